"""What runs a pattern: legato_rt, and what people would use instead.

Every system gets the same calls: task ``i`` is ``body(i, *values of the tasks that it needs)``.
Building the graph or submitting it, running it and fetching the values of its sinks counts;
opening and closing the system does not.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import legato_rt as lrt
from bench.patterns import Pattern

Body = Callable[..., int]


class Outcome(NamedTuple):
    """Values of a pattern's sinks, and what the caller should free only when the clock stands."""

    values: list[int]
    kept: object = None


Runner = Callable[[Pattern, Body], Outcome]


def empty(number: int, *values: int) -> int:
    """A task that does nothing."""
    return number


def mixed(number: int, *values: int) -> int:
    """A value that depends on the number, on all the values and on their order."""
    state = number * 2654435761 + 12345
    for value in values:
        state = state * 1000003 ^ value
        state &= 0xFFFFFFFFFFFFFFFF
    return state


def plain(pattern: Pattern, body: Body) -> Outcome:
    """A loop over the tasks, without any runtime: what the others are verified by."""
    values: list[int] = []
    for number, needs in enumerate(pattern.needs):
        values.append(body(number, *[values[n] for n in needs]))
    return Outcome([values[sink] for sink in pattern.sinks])


TASKS: dict[Body, lrt.Task[..., int]] = {body: lrt.task(body) for body in (empty, mixed)}


@contextlib.contextmanager
def legato(workers: int) -> Iterator[Runner]:
    """legato_rt with its defaults; dependences from futures."""

    def run(pattern: Pattern, body: Body) -> Outcome:
        submit = TASKS[body].submit
        futures: list[lrt.Future[int]] = []
        for number, needs in enumerate(pattern.needs):
            futures.append(submit(number, *[futures[n] for n in needs]))
        return Outcome([futures[sink].result() for sink in pattern.sinks], futures)

    with lrt.Runtime(workers=workers):
        yield run


@contextlib.contextmanager
def thread_pool(workers: int) -> Iterator[Runner]:
    """ThreadPoolExecutor; a task blocks on the results that it needs.

    Its queue is first in, first out, so whatever a task waits for has been started before it.
    """

    def gathered(body: Body, number: int, futures: list[Future[int]]) -> int:
        return body(number, *[future.result() for future in futures])

    with ThreadPoolExecutor(workers) as pool:

        def run(pattern: Pattern, body: Body) -> Outcome:
            futures: list[Future[int]] = []
            for number, needs in enumerate(pattern.needs):
                if needs:
                    future = pool.submit(gathered, body, number, [futures[n] for n in needs])
                else:
                    future = pool.submit(body, number)
                futures.append(future)
            return Outcome([futures[sink].result() for sink in pattern.sinks], futures)

        yield run


@contextlib.contextmanager
def dask_threaded(workers: int) -> Iterator[Runner]:
    """dask's threaded scheduler on a graph in its own form, so that it converts nothing."""
    import dask.threaded
    from dask._task_spec import Task, TaskRef

    with ThreadPoolExecutor(workers) as pool:

        def run(pattern: Pattern, body: Body) -> Outcome:
            graph: dict[tuple[str, int], Any] = {}
            for number, needs in enumerate(pattern.needs):
                key = "task", number
                graph[key] = Task(key, body, number, *[TaskRef(("task", n)) for n in needs])
            keys = [("task", sink) for sink in pattern.sinks]
            return Outcome(list(dask.threaded.get(graph, keys, pool=pool)), graph)

        yield run


SYSTEMS: dict[str, Callable[[int], contextlib.AbstractContextManager[Runner]]] = {
    "legato_rt": legato,
    "ThreadPoolExecutor": thread_pool,
    "dask threaded": dask_threaded,
}
"""Every system by name, opened for a number of workers."""
