"""The contract of executors: what a program may rely on, whoever runs its tasks."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np

from legato_rt.access import In, InOut, Out
from legato_rt.errors import CancelledError, DependencyError, TaskError
from legato_rt.executor import EXECUTORS
from legato_rt.executor.base import Executor
from legato_rt.face import host, wait
from legato_rt.future import Future
from legato_rt.runtime import Runtime
from legato_rt.task import task
from legato_rt.testing.stage import expect

LIMIT_S = 60.0
"""How long a check waits for what must come."""

Kind = str | type[Executor]


def check_executor(executor: Kind) -> None:
    """Hold an executor to its contract, on one worker and on three.

    Parameters
    ----------
    executor : str or type
        The name of one that is registered, or a class.

    Raises
    ------
    AssertionError
        Saying what the executor did.
    """
    for check in EXECUTOR_CHECKS:
        for workers in (1, 3):
            check(executor, workers)


@contextlib.contextmanager
def opened(executor: Kind, workers: int, **settings: Any) -> Iterator[Runtime]:
    """A runtime with an executor under test; every step of its scheduler is checked.

    Parameters
    ----------
    executor : str or type
    workers : int
        Of the CPU.
    **settings
        More of the `Runtime`'s.
    """
    name = executor if isinstance(executor, str) else f"{executor.__name__} under test"
    before = set(threading.enumerate())
    if not isinstance(executor, str):
        EXECUTORS[name] = executor
    try:
        settings = {"devices": "cpu", "validate": True, **settings}
        with Runtime(executor=name, workers=workers, **settings) as runtime:
            yield runtime
    finally:
        if not isinstance(executor, str):
            del EXECUTORS[name]
    left = set(threading.enumerate()) - before
    expect(not left, f"threads are left behind: {left}")


@task
def _add(a: Any, b: Any = 0) -> Any:
    return a + b


@task
def _total(parts: Any) -> Any:
    return sum(parts)


@task
def _fail(a: Any = None) -> None:
    raise KeyError("its own")


@task
def _scale(x: InOut[Any], factor: int, shift: int) -> None:
    x *= factor
    x += shift


@task
def _fill(x: Out[Any], value: int) -> None:
    x[...] = value


@task
def _sum(x: In[Any]) -> int:
    return int(x.sum())


@task
def _hold(started: threading.Event, gate: threading.Event) -> bool:
    started.set()
    return gate.wait(LIMIT_S)


@task
def _fib(n: int) -> int:
    if n < 2:
        return n
    one, two = _fib.submit(n - 1), _fib.submit(n - 2)
    return one.result() + two.result()


@task
def _halves(x: InOut[Any]) -> None:
    for half in (x[: len(x) // 2], x[len(x) // 2 :]):
        if len(half) > 1:
            _halves.submit(half)
        else:
            _scale.submit(half, 2, 1)


def results_arrive(executor: Kind, workers: int) -> None:
    """Values, keywords, and futures as arguments, also inside containers."""
    with opened(executor, workers) as runtime:
        one = _add.submit(1, b=2)
        parts = _add.map(range(20), [one] * 20)
        total = _total.submit({"a": parts, "b": one}["a"])
        expect(total.result(LIMIT_S) == sum(range(20)) + 60, f"a sum is {total.result()}")
        expect(one.done() and not one.running() and not one.cancelled(), f"{one} is finished")
        value = object()
        expect(_add.submit([value], []).result(LIMIT_S)[0] is value, "a value became another")
        ran = runtime.report().tasks
        expect(ran == 23, f"the report counts {ran} of 23 tasks")


def failures_arrive(executor: Kind, workers: int) -> None:
    """What needs a failed task fails with it, everything else goes on."""
    with opened(executor, workers):
        data = np.zeros(4, np.int64)
        failed = _fail.submit()
        needs, other = _add.submit(failed, 1), _add.submit(2, 3)
        overwritten = _fill.submit(data, 7)
        error = failed.exception(LIMIT_S)
        expect(isinstance(error, TaskError), f"a body that raises gives {error!r}")
        expect(repr(getattr(error, "__cause__", None)) == "KeyError('its own')", "no cause")
        expect(isinstance(needs.exception(LIMIT_S), DependencyError), "a dependent did not fail")
        expect(other.result(LIMIT_S) == 5, "an independent task did not go on")
        overwritten.result(LIMIT_S)
        expect((data == 7).all(), "an independent task did not write")
        expect(_add.submit(1, 1).result(LIMIT_S) == 2, "nothing runs after a failure")


def unseen_failures_are_raised_at_the_end(executor: Kind, workers: int) -> None:
    """As one group of root causes, after all tasks are over."""
    last: list[Future[Any]] = []
    try:
        with opened(executor, workers):
            failed = _fail.submit()
            _add.submit(failed)
            last += [_fail.submit(), _add.submit(1, 1)]
    except ExceptionGroup as group:
        causes = [type(error.__cause__) for error in group.exceptions]
        expect(causes == [KeyError, KeyError], f"the group holds {group.exceptions}")
    else:
        expect(False, "failures that nobody saw are not raised at the end")
    expect(all(future.done() for future in last), "a task is not over when the runtime closes")


def cancelled_tasks_do_not_run(executor: Kind, workers: int) -> None:
    """Where a task could be cancelled, it and what needs it never run."""
    with opened(executor, workers) as runtime:
        ran: list[int] = []
        note = task(lambda number, after=None: ran.append(number))
        with _held(runtime, workers):
            futures = [note.submit(number) for number in range(6)]
            dependent = note.submit(6, futures[3])
            gone = [future for future in futures[1::2] if future.cancel()]
        for future in futures:
            if future not in gone:
                future.exception(LIMIT_S)
        runtime.wait(timeout=LIMIT_S)
        for future in gone:
            expect(future.cancelled() and future.done(), f"{future} says it was cancelled")
            try:
                future.result(LIMIT_S)
            except CancelledError:
                pass
            else:
                expect(False, "the result of a cancelled task arrives")
        failed = isinstance(dependent.exception(LIMIT_S), DependencyError)
        expect(failed == (futures[3] in gone), "what needs a cancelled task fails, and only that")
        kept = [n for n, future in enumerate(futures) if future not in gone]
        expect(sorted(ran) == kept + [6] * (not failed), f"{ran} ran, {kept} were not cancelled")
        expect(not futures[0].cancel(), "a task that is over is cancelled")


def callbacks_are_called_once(executor: Kind, workers: int) -> None:
    """When the task is over in whatever way, also if it was over before."""
    with opened(executor, workers) as runtime:
        called: list[Future[Any]] = []
        with _held(runtime, workers):
            futures = [_add.submit(1), _fail.submit()]
            futures.append(_add.submit(futures[1]))
            for future in futures:
                future.add_done_callback(called.append)
        errors = [future.exception(LIMIT_S) for future in futures]
        expect([e is None for e in errors] == [True, False, False], f"they end as {errors}")
        runtime.wait(timeout=LIMIT_S)
        futures[0].add_done_callback(called.append)
        done = threading.Event()
        for future in futures:
            future.add_done_callback(lambda _: done.set())
        expect(done.wait(LIMIT_S), "a callback on a task that is over is not called")
    names = [sum(future is other for other in called) for future in futures]
    expect(names == [2, 1, 1], f"callbacks of three tasks were called {names} times")


def tasks_submit_tasks(executor: Kind, workers: int) -> None:
    """To any depth on any number of workers; a parent is over when its children are."""
    with opened(executor, workers):
        expect(_fib.submit(8).result(LIMIT_S) == 21, "a recursion by tasks gives something else")
        data = np.arange(16)
        _halves.submit(data)
        total = _sum.submit(data)
        expect(total.result(LIMIT_S) == 256, f"a parent is over before its children: {total}")


def data_comes_back(executor: Kind, workers: int) -> None:
    """`wait`, `host` and the end of the runtime give data back to the program."""
    data = np.ones(8, np.int64)
    with opened(executor, workers) as runtime:
        _scale.submit(data, 3, 1)
        wait(data[:3], timeout=LIMIT_S)
        expect((data == 4).all(), f"wait() returns, and the data is {data}")
        _scale.submit(data, 2, 0)
        with host(data, "inout") as lent:
            expect((lent == 8).all(), f"host() lends {lent}")
            lent += 1
        _scale.submit(data, 1, 1)
        wait(timeout=LIMIT_S)
        expect((data == 10).all(), f"after wait() for all the data is {data}")
        with _held(runtime, workers) as holders:
            if holders:
                try:
                    holders[0].result(timeout=0.0)
                except TimeoutError:
                    pass
                else:
                    expect(False, "the time for a result is over, and nothing is raised")
        _scale.submit(data, 2, 0)
    expect((data == 20).all(), f"after the runtime the data is {data}")


def conflicts_keep_their_order(executor: Kind, workers: int) -> None:
    """Tasks on overlapping views give what they give one by one, and never overlap in time."""
    for devices in ("cpu", "cpu,simulated"):
        random, data = Random(workers), np.arange(24)
        known = data.copy()
        spans: list[tuple[int, slice]] = []
        with opened(executor, workers, devices=devices, trace=True) as runtime:
            for _ in range(150):
                part = slice(random.randrange(20), random.randrange(4, 25), random.choice((1, 2)))
                factor, shift = random.choice((-1, 1, 2)), random.randrange(9)
                _scale.submit(data[part], factor, shift)
                known[part] = known[part] * factor + shift
                spans.append((len(spans), part))
            wait(data, timeout=LIMIT_S)
            records = sorted(runtime.trace, key=lambda record: record.node)
        expect((data == known).all(), f"tasks on views give {data} and not {known}")
        expect(len(records) == len(spans), f"{len(records)} of {len(spans)} tasks ran")
        touched = [set(range(24)[part]) for _, part in spans]
        for later, record in enumerate(records):
            for earlier in range(later):
                if touched[earlier] & touched[later]:
                    ordered = records[earlier].stop_ns <= record.start_ns
                    expect(ordered, f"task {earlier} and task {later} ran at the same time")


@contextlib.contextmanager
def _held(runtime: Runtime, workers: int) -> Iterator[list[Future[Any]]]:
    """Keep every worker busy for the length of a block, where submit does not run the task."""
    if runtime.executor.inline:
        yield []
        return
    gate = threading.Event()
    started = [threading.Event() for _ in range(workers)]
    holders = [_hold.submit(event, gate) for event in started]
    try:
        for event in started:
            expect(event.wait(LIMIT_S), "a worker has nothing to do, and does not start a task")
        yield holders
    finally:
        gate.set()
    expect(all(holder.result(LIMIT_S) for holder in holders), "a task was not let go")


EXECUTOR_CHECKS: tuple[Callable[[Kind, int], None], ...] = (
    results_arrive,
    failures_arrive,
    unseen_failures_are_raised_at_the_end,
    cancelled_tasks_do_not_run,
    callbacks_are_called_once,
    tasks_submit_tasks,
    data_comes_back,
    conflicts_keep_their_order,
)
"""Each is called with an executor and a number of workers."""
