"""`Future`: what `concurrent.futures.Future` offers, and how the graph takes part in it."""

import concurrent.futures
import inspect
import logging
import pickle
import threading
from contextvars import copy_context
from typing import Any

import numpy as np
import pytest

import legato_rt as lrt
from legato_rt import In, InOut

HANG_S = 30.0

everywhere = pytest.mark.parametrize("executor", ["serial", "threads"])


@lrt.task
def add(first: Any, second: Any = 1) -> Any:
    return first + second


@lrt.task
def boom() -> None:
    raise ValueError("as asked")


@lrt.task
def increment(x: InOut[Any]) -> None:
    x += 1


@lrt.task
def total(x: In[Any]) -> float:
    return float(x.sum())


class Held:
    """A task that runs until `go` is set, on the only worker of a runtime."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.running = threading.Event()
        self.future = hold.submit(self)
        assert self.running.wait(HANG_S)


@lrt.task
def hold(held: Held) -> str:
    held.running.set()
    assert held.go.wait(HANG_S)
    return "released"


# -- the methods of concurrent.futures -------------------------------------------------------------


def test_every_method_that_users_call_is_there() -> None:
    for_executors = {"set_running_or_notify_cancel", "set_result", "set_exception"}
    theirs = {
        name
        for name, _ in inspect.getmembers(concurrent.futures.Future, inspect.isfunction)
        if not name.startswith("_")
    }
    for name in theirs - for_executors:
        mine = inspect.signature(getattr(lrt.Future, name))
        other = inspect.signature(getattr(concurrent.futures.Future, name))
        assert len(mine.parameters) == len(other.parameters), name
        assert [p.default for p in mine.parameters.values()] == [
            p.default for p in other.parameters.values()
        ]


@everywhere
def test_a_finished_future(executor: str) -> None:
    with lrt.Runtime(executor=executor):
        future = add.submit(1)
        assert future.result() == future.result(timeout=0) == 2
        assert future.exception() is None
        assert (future.done(), future.running(), future.cancelled()) == (True, False, False)
        assert not future.cancel()
        assert repr(future) == "<future add#0: finished>"
    assert future.result() == 2, "also after the runtime is closed"


@everywhere
def test_a_failed_future(executor: str) -> None:
    with lrt.Runtime(executor=executor):
        future = boom.submit()
        error = future.exception()
        with pytest.raises(lrt.TaskError) as caught:
            future.result()
        assert caught.value is error
        assert (future.done(), future.running(), future.cancelled()) == (True, False, False)
        assert not future.cancel()


def test_a_running_and_a_pending_future() -> None:
    with lrt.Runtime(workers=1):
        held = Held()
        pending = add.submit(1)
        assert (held.future.done(), held.future.running()) == (False, True)
        assert (pending.done(), pending.running()) == (False, False)
        assert not held.future.cancel()
        for future in (held.future, pending):
            for ask in (future.result, future.exception):
                with pytest.raises(TimeoutError):
                    ask(timeout=0)
                with pytest.raises(concurrent.futures.TimeoutError):
                    ask(0.001)
        held.go.set()
        assert pending.result(timeout=HANG_S) == 2
        assert held.future.result() == "released"


def test_a_future_is_not_pickled() -> None:
    with lrt.Runtime(workers=1), pytest.raises(TypeError, match="pass it as an argument of submit"):
        pickle.dumps(add.submit(1))


# -- callbacks ------------------------------------------------------------------------------------


@everywhere
def test_callbacks_are_called_in_order_with_the_future(executor: str) -> None:
    calls: list[Any] = []
    with lrt.Runtime(executor=executor, workers=1):
        held = Held() if executor == "threads" else None
        future = add.submit(1)
        for n in range(3):
            future.add_done_callback(lambda f, n=n: calls.append((n, f, f.result(), f.done())))
        if held is not None:
            assert calls == []
            held.go.set()
    assert calls == [(n, future, 2, True) for n in range(3)]


@everywhere
def test_a_callback_of_a_future_that_is_over_is_called_at_once(executor: str) -> None:
    calls: list[Any] = []
    with lrt.Runtime(executor=executor):
        future = add.submit(1)
        future.result()
        future.add_done_callback(calls.append)
        assert calls == [future]
    future.add_done_callback(calls.append)
    assert calls == [future, future]


@everywhere
def test_a_callback_that_raises_is_logged_and_disturbs_nobody(
    executor: str, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[Any] = []

    def broken(_: Any) -> None:
        raise RuntimeError("in the callback")

    with caplog.at_level(logging.ERROR), lrt.Runtime(executor=executor, workers=1):
        held = Held() if executor == "threads" else None
        future = add.submit(1)
        future.add_done_callback(broken)
        future.add_done_callback(calls.append)
        if held is not None:
            held.go.set()
        assert add.submit(future).result() == 3
    assert calls == [future]
    assert "a callback of <future add#" in caplog.text
    assert "in the callback" in caplog.text


@everywhere
def test_callbacks_hear_of_failures_and_cancellations(executor: str) -> None:
    heard: dict[Any, str] = {}

    def note(future: Any) -> None:
        heard[future] = "cancelled" if future.cancelled() else type(future.exception()).__name__

    with lrt.Runtime(executor=executor, workers=1):
        held = Held() if executor == "threads" else None
        failed = boom.submit()
        futures = [failed, add.submit(failed)]
        if held is not None:
            futures.append(add.submit(1))
            assert futures[-1].cancel()
        for future in futures:
            future.add_done_callback(note)
        if held is not None:
            held.go.set()
    expected = ["TaskError", "DependencyError", "cancelled"]
    assert [heard[future] for future in futures] == expected[: len(futures)]


def test_a_callback_may_submit_and_wait() -> None:
    calls: list[Any] = []
    done = threading.Event()

    def go_on(future: Any) -> None:
        calls.append(add.submit(future, 10))
        done.set()

    with lrt.Runtime(workers=1):
        add.submit(1).add_done_callback(go_on)
        assert done.wait(HANG_S)
    assert calls[0].result() == 12


# -- cancelling -----------------------------------------------------------------------------------


def test_a_pending_task_is_cancelled_and_what_needs_it_fails() -> None:
    x = np.zeros(1)
    with lrt.Runtime(workers=1):
        held = Held()
        future = add.submit(1)
        needs_it, writer, reader = add.submit(future), increment.submit(x), total.submit(x)
        assert future.cancel()
        assert future.cancel(), "once more changes nothing"
        assert writer.cancel()
        assert (future.done(), future.cancelled(), future.running()) == (True, True, False)
        for ask in (future.result, future.exception):
            with pytest.raises(lrt.CancelledError):
                ask()
            with pytest.raises(concurrent.futures.CancelledError, match=r"add#1 .*was cancelled"):
                ask(timeout=0)
        held.go.set()
        for lost in (needs_it, reader):
            error = lost.exception()
            assert isinstance(error, lrt.DependencyError)
            assert isinstance(error.roots[0], lrt.CancelledError)
        assert add.submit(1).result() == 2
    assert x[0] == 0


def test_a_task_that_waits_for_others_is_cancelled() -> None:
    x = np.zeros(1)

    @lrt.task
    def reads(x: In[Any], held: Held) -> None:
        hold.function(held)

    with lrt.Runtime(workers=2):
        first = Held.__new__(Held)
        first.go, first.running = threading.Event(), threading.Event()
        reads.submit(x, first)
        assert first.running.wait(HANG_S)
        writer, after = increment.submit(x), total.submit(x)
        assert writer.cancel()
        assert writer.cancelled()
        first.go.set()
        assert isinstance(after.exception(), lrt.DependencyError)
    assert x[0] == 0


# -- map, options ---------------------------------------------------------------------------------


@everywhere
def test_map_submits_as_the_built_in_calls(executor: str) -> None:
    with lrt.Runtime(executor=executor):
        assert [f.result() for f in add.map(range(3), (10, 20, 30, 40))] == [10, 21, 32]
        bound = add.options(priority=2, name="sum")
        futures = bound.map(add.map([1, 2]))
        assert [f.result() for f in futures] == [3, 4]
        assert [repr(f) for f in futures] == [
            "<future sum#5: finished>",
            "<future sum#6: finished>",
        ]
        assert add.map([]) == []


@everywhere
def test_options_keep_the_task_as_it_is(executor: str) -> None:
    with lrt.Runtime(executor=executor):
        named = add.options(name="sum")
        assert named.options(priority=3).submit(1, second=2).result() == 3
        assert named(1) == 2
        assert repr(add.submit(1)).startswith("<future add#")


@everywhere
def test_methods_defaults_and_keywords(executor: str) -> None:
    class Scale:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        @lrt.task
        def apply(self, x: InOut[Any], *more: float, shift: float = 0) -> float:
            x *= self.factor
            x += shift
            return sum(more)

    x = np.ones(2)
    with lrt.Runtime(executor=executor):
        scale = Scale(3)
        assert scale.apply.submit(x).result() == 0
        assert scale.apply.submit(x, 1, 2, shift=1).result() == 3
        assert scale.apply.options(priority=1).submit(x=x).result() == 0
        assert scale.apply(x=np.ones(1)) == 0
    assert x.tolist() == [30, 30]


# -- whose runtime --------------------------------------------------------------------------------


def test_a_thread_uses_the_only_open_runtime() -> None:
    found: list[Any] = []
    with lrt.Runtime(workers=1):
        thread = threading.Thread(target=lambda: found.append(add.submit(1).result()))
        thread.start()
        thread.join()
    assert found == [2]


@everywhere
def test_a_thread_with_a_context_uses_that_contexts_runtime(executor: str) -> None:
    runtimes: list[Any] = []

    def submit() -> None:
        runtimes.append(add.submit(1).parent.runtime)

    with lrt.Runtime(workers=1, executor=executor) as outer:
        from_outer = copy_context()
        with lrt.Runtime(workers=1, executor=executor) as inner:
            for context in (from_outer, copy_context()):
                thread = threading.Thread(target=context.run, args=(submit,))
                thread.start()
                thread.join()
    assert runtimes == [outer, inner]


@everywhere
def test_a_runtime_within_a_runtime(executor: str) -> None:
    with lrt.Runtime(workers=1, executor=executor) as outer:
        mine = add.submit(1)
        with lrt.Runtime(workers=1, executor=executor) as inner:
            assert add.submit(1).parent.runtime is inner  # type: ignore[attr-defined]
        assert add.submit(mine).parent.runtime is outer  # type: ignore[attr-defined]


@everywhere
def test_a_body_opens_a_runtime_of_its_own(executor: str) -> None:
    @lrt.task
    def body() -> tuple[int, int]:
        with lrt.Runtime(workers=1, executor=executor):
            inside = add.submit(1).result()
        return inside, add.submit(10).result()

    with lrt.Runtime(workers=1, executor=executor):
        assert body.submit().result() == (2, 11)


def test_a_pending_future_of_another_runtime_is_refused() -> None:
    with lrt.Runtime(workers=1):
        held = Held()
        foreign = add.submit(1)
        with lrt.Runtime(workers=1):
            for argument in (foreign, [foreign]):
                with pytest.raises(lrt.UsageError, match="future of another runtime"):
                    add.submit(argument)
            held.go.set()
            assert foreign.result() == 2
            assert add.submit(foreign).result() == 3
