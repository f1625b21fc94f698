"""What tasks cost in memory, pending and finished, and that nothing lives longer than it must."""

import gc
import threading
import tracemalloc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import legato_rt as lrt
from legato_rt import In, InOut

HANG_S = 60.0
PENDING_BYTES = 1536
FINISHED_BYTES = 400

counts = pytest.mark.parametrize("count", [20_000, pytest.param(100_000, marks=pytest.mark.slow)])


@lrt.task
def nothing(value: Any) -> None:
    """Do nothing."""


@lrt.task
def increment(x: InOut[Any]) -> None:
    x += 1


@lrt.task
def plus_one(value: int) -> int:
    return value + 1


@lrt.task
def hold(event: threading.Event) -> None:
    assert event.wait(HANG_S)


class Result:
    """Can be referenced weakly, unlike numbers and lists."""


@lrt.task
def make(*_: Any) -> Result:
    return Result()


def allocated() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def independent(count: int) -> list[Any]:
    return [nothing.submit(None) for _ in range(count)]


def chain_on_data(count: int) -> list[Any]:
    x = np.zeros(1)
    return [increment.submit(x) for _ in range(count)]


def chain_of_futures(count: int) -> list[Any]:
    futures = [plus_one.submit(0)]
    while len(futures) < count:
        futures.append(plus_one.submit(futures[-1]))
    return futures


def fan_out(count: int) -> list[Any]:
    source = make.submit()
    return [nothing.submit(source) for _ in range(count)]


def readers(count: int) -> list[Any]:
    x = np.zeros(1)

    return [nothing.submit(x) for _ in range(count)]


SHAPES = [independent, chain_on_data, chain_of_futures, fan_out, readers]
shapes = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)


@shapes
@counts
def test_bytes_of_pending_and_finished_tasks(shape: Callable[[int], list[Any]], count: int) -> None:
    go = threading.Event()
    with lrt.Runtime(workers=1) as runtime:
        hold.submit(go)
        tracemalloc.start()
        try:
            before = allocated()
            futures = shape(count)
            pending = allocated() - before
            go.set()
            runtime.wait()
            finished = allocated() - before
        finally:
            go.set()
            tracemalloc.stop()
    assert len(futures) == count
    assert pending / count < PENDING_BYTES
    assert finished / count < FINISHED_BYTES


@pytest.mark.parametrize("policy", ["fifo", "steal"])
@shapes
def test_graphs_of_100000_tasks_finish(shape: Callable[[int], list[Any]], policy: str) -> None:
    with lrt.Runtime(workers=2, policy=policy) as runtime:
        futures = shape(100_000)
        runtime.wait()
        assert all(future.done() for future in futures)
        assert futures[-1].exception() is None


@counts
@pytest.mark.parametrize("executor", ["serial", "threads"])
def test_a_failure_spreads_along_a_long_chain(executor: str, count: int) -> None:
    @lrt.task
    def boom(event: threading.Event) -> int:
        assert event.wait(HANG_S)
        raise ValueError("as asked")

    go = threading.Event()
    if executor == "serial":
        go.set()
    with lrt.Runtime(workers=1, executor=executor) as runtime:
        futures = [boom.submit(go)]
        while len(futures) < count:
            futures.append(plus_one.submit(futures[-1]))
        go.set()
        runtime.wait()
        error = futures[-1].exception()
        assert isinstance(error, lrt.DependencyError)
        assert error.roots == (futures[0].exception(),)


@pytest.mark.parametrize("executor", ["serial", "threads"])
def test_a_result_dies_with_its_future(executor: str) -> None:
    with lrt.Runtime(workers=1, executor=executor) as runtime:
        future = make.submit()
        alive = weakref.ref(future.result())
        runtime.wait()
        gc.collect()
        assert alive() is not None
        del future
        gc.collect()
        assert alive() is None


@pytest.mark.parametrize("executor", ["serial", "threads"])
def test_a_result_that_others_used_dies_with_its_future(executor: str) -> None:
    with lrt.Runtime(workers=1, executor=executor) as runtime:
        future = make.submit()
        users = [nothing.submit(future), make.submit([future])]
        alive = weakref.ref(future.result())
        runtime.wait()
        del future
        gc.collect()
        assert alive() is None
        assert all(user.done() for user in users)


@pytest.mark.parametrize("executor", ["serial", "threads"])
@pytest.mark.parametrize("wanted", [True, False], ids=["future-kept", "future-dropped"])
def test_arguments_are_dropped_after_the_body(executor: str, wanted: bool) -> None:
    x, thing = np.zeros(3), Result()
    alive = [weakref.ref(x), weakref.ref(thing)]
    with lrt.Runtime(workers=1, executor=executor) as runtime:
        future = make.submit(x, thing)
        kept = [future] if wanted else []
        runtime.wait()
        del x, thing, future
        nothing.submit(None).result()  # the worker is past the task
        gc.collect()
        assert [reference() for reference in alive] == [None, None]
        assert all(future.done() for future in kept)


@pytest.mark.parametrize("executor", ["serial", "threads"])
def test_arguments_of_cancelled_and_of_failed_tasks_are_dropped(executor: str) -> None:
    @lrt.task
    def boom(_: Any) -> int:
        raise ValueError("as asked")

    things = [Result(), Result()]
    alive = [weakref.ref(thing) for thing in things]
    with lrt.Runtime(workers=1, executor=executor) as runtime:
        failed = boom.submit(None)
        lost = make.submit(failed, things[0])
        cancelled = make.submit(things[1])
        cancelled.cancel()
        runtime.wait()
        things.clear()
        assert isinstance(lost.exception(), lrt.DependencyError)
        nothing.submit(None).result()
        gc.collect()
        assert [reference() for reference in alive] == [None, None]


@pytest.mark.parametrize("executor", ["serial", "threads"])
def test_data_that_nobody_uses_any_more_is_forgotten(executor: str) -> None:
    with lrt.Runtime(workers=1, executor=executor) as runtime:
        for _ in range(500):
            x = np.zeros(1000)
            increment.submit(x)
            increment.submit(x[1:])
        alive = weakref.ref(x)
        del x
        runtime.wait()
        nothing.submit(None).result()
        gc.collect()
        assert alive() is None


def test_a_closed_runtime_dies() -> None:
    @lrt.task
    def read(x: In[Any]) -> float:
        return float(x.sum())

    with lrt.Runtime(workers=2, trace=True) as runtime:
        total = read.submit(np.ones(3))
        assert total.result() == 3
    alive = weakref.ref(runtime)
    del runtime, total
    gc.collect()
    assert alive() is None
