"""Static list scheduling on heterogeneous workers: HEFT, with insertion into gaps.

Tasks are taken by decreasing upward rank; each goes to the worker on which it finishes first, into
the first gap that is long enough.  Source: Topcuoglu, Hariri and Wu 2002, see `ranks`.  The plan of
a million tasks takes a few microseconds each, since gaps are kept as `gaps` says.

A task of zero seconds takes up no worker.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from legato_rt.errors import UsageError
from legato_rt.order.arrays import Floats, Ints
from legato_rt.order.dag import Dag
from legato_rt.order.ranks import Rule, seconds_of, upward_rank, weights


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """Where and when each of n tasks runs.

    Attributes
    ----------
    worker : array of int32, shape (n,)
    start_s, finish_s : array of float64, shape (n,)
    """

    worker: Ints
    start_s: Floats
    finish_s: Floats

    @property
    def makespan_s(self) -> float:
        """When the last task finishes."""
        return float(self.finish_s.max(initial=0.0))


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """What it costs to bring data from worker to worker.

    Attributes
    ----------
    seconds_per_byte, latency_s : array, shape (workers, workers)
        From the row's worker to the column's; nothing on the diagonal.
    """

    seconds_per_byte: Floats
    latency_s: Floats

    @classmethod
    def none(cls, workers: int) -> Links:
        """Transfers that cost nothing."""
        return cls(np.zeros((workers, workers)), np.zeros((workers, workers)))

    @classmethod
    def uniform(cls, workers: int, bytes_per_s: float, latency_s: float = 0.0) -> Links:
        """The same cost between any two workers."""
        apart = 1.0 - np.eye(workers)
        return cls(apart / bytes_per_s, apart * latency_s)

    @property
    def mean(self) -> tuple[float, float]:
        """Mean seconds per byte and mean latency over all pairs of different workers."""
        workers = len(self.latency_s)
        apart = ~np.eye(workers, dtype=bool)
        if workers == 1:
            return 0.0, 0.0
        return float(self.seconds_per_byte[apart].mean()), float(self.latency_s[apart].mean())


def sequence(dag: Dag, rank: npt.ArrayLike) -> Ints:
    """All tasks by decreasing rank; equal ones in topological order."""
    position = np.empty(len(dag), dtype=np.int64)
    position[dag.order] = np.arange(len(dag))
    return np.lexsort((position, -np.asarray(rank, dtype=np.float64))).astype(np.int32)


def heft(
    dag: Dag,
    seconds: npt.ArrayLike,
    *,
    rank: Rule | None = None,
    order_by: npt.ArrayLike | None = None,
    links: Links | None = None,
    release_s: npt.ArrayLike | None = None,
    available_s: npt.ArrayLike | None = None,
    penalty_s: npt.ArrayLike | None = None,
    insertion: bool = True,
) -> Schedule:
    """Plan a whole graph.

    Parameters
    ----------
    seconds : array_like, shape (n, workers)
        Infinite where a worker cannot run a task.
    rank : rule of `weights`, optional
        What the upward rank makes of a task's different times; ``"mean"`` by default.
    order_by : array_like, shape (n,), optional
        Plan by decreasing values of this, not of the upward rank; none above a predecessor's.
    links : Links, optional
        Transfers cost nothing by default.
    release_s, available_s : array_like, shape (n,) and (workers,), optional
        When each task can start and each worker has time, at the earliest.
    penalty_s : array_like, shape (workers,) or (n, workers), optional
        Added to the finish when workers are compared, to bias the choice.
    insertion : bool
        Whether a task may go into a gap before one that was planned earlier.
    """
    table = seconds_of(seconds, len(dag))
    costs = _links(links, table.shape[1])
    if order_by is None:
        order_by = upward_rank(dag, weights(table, rank or "mean"), *costs.mean)
    release = _given(release_s, (len(dag),))
    available = _given(available_s, table.shape[1:])
    penalty = np.atleast_2d(_given(penalty_s, table.shape[1:], table.shape))
    return _placed(dag, order_by, table, costs, (release, available, penalty), insertion)


def _placed(
    dag: Dag,
    order_by: npt.ArrayLike,
    table: Floats,
    links: Links,
    given: tuple[Floats, Floats, Floats],
    insertion: bool,
) -> Schedule:
    from legato_rt.order.heft_kernel import place

    tasks = sequence(dag, _monotone(dag, order_by))
    graph = dag.predecessor_start, dag.predecessors, dag.predecessor_bytes
    moves = links.seconds_per_byte, links.latency_s
    return Schedule(*place(tasks, *graph, table, *moves, *given, insertion))


def _links(links: Links | None, workers: int) -> Links:
    if links is None:
        return Links.none(workers)
    if links.latency_s.shape != (workers, workers):
        raise UsageError(f"links of {len(links.latency_s)} workers for {workers}")
    return Links(
        np.ascontiguousarray(links.seconds_per_byte, dtype=np.float64),
        np.ascontiguousarray(links.latency_s, dtype=np.float64),
    )


def violations(
    dag: Dag,
    seconds: npt.ArrayLike,
    schedule: Schedule,
    links: Links | None = None,
    tolerance: float = 1e-9,
) -> Iterator[str]:
    """Whatever is wrong with a schedule, in words; a valid one yields nothing.

    ``tolerance`` is relative to the makespan.
    """
    table = np.asarray(seconds, dtype=np.float64)
    costs = links or Links.none(table.shape[1])
    slack = tolerance * max(schedule.makespan_s, 1e-300)
    where, start, finish = schedule.worker, schedule.start_s, schedule.finish_s
    tasks = np.arange(len(dag))
    took = table[tasks, where] if len(dag) else np.zeros(0)
    for task in np.flatnonzero(~(np.abs(finish - start - took) <= slack) | (start < -slack)):
        yield f"task {task} runs from {start[task]:g} to {finish[task]:g} s, not {took[task]:g} s"
    before = np.repeat(tasks, np.diff(dag.successor_start))
    after, sizes = dag.successors, dag.successor_bytes
    pair = where[before], where[after]
    moves = (pair[0] != pair[1]) & (sizes > 0)
    cost = np.where(moves, costs.latency_s[pair] + sizes * costs.seconds_per_byte[pair], 0.0)
    for edge in np.flatnonzero(start[after] < finish[before] + cost - slack):
        yield f"task {after[edge]} starts before the data of task {before[edge]} are there"
    busy = took > 0
    by_time = tasks[busy][np.lexsort((start[busy], where[busy]))]
    first, second = by_time[:-1], by_time[1:]
    overlap = (where[first] == where[second]) & (finish[first] > start[second] + slack)
    for at in np.flatnonzero(overlap):
        yield f"tasks {first[at]} and {second[at]} overlap on worker {where[first[at]]}"


def _given(values: npt.ArrayLike | None, *shapes: tuple[int, ...]) -> Floats:
    if values is None:
        return np.zeros(shapes[0])
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.shape not in shapes or not np.isfinite(array).all():
        raise UsageError(f"finite numbers of shape {shapes[0]} are needed, not {array.shape}")
    return array


def _monotone(dag: Dag, order_by: npt.ArrayLike) -> Floats:
    rank = _given(order_by, (len(dag),))
    before = np.repeat(np.arange(len(dag)), np.diff(dag.successor_start))
    wrong = np.flatnonzero(rank[before] < rank[dag.successors])
    if len(wrong):
        early, late = before[wrong[0]], dag.successors[wrong[0]]
        raise UsageError(f"task {late} ranks above its predecessor {early}")
    return rank
