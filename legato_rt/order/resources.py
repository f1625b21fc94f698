"""Schedules of tasks that share limited resources: resource-constrained project scheduling.

Every task needs some units of each of several resources while it runs, and there is only so much of
each.  Two ways to build a schedule, from R. Kolisch, Serial and parallel resource-constrained
project scheduling methods revisited, EJOR 90, 1996:

* **parallel**: go through time, and at each moment start what fits, the most urgent first;
* **serial**: take the tasks in an order that respects the edges, and start each as early as it can.

The most urgent task is the one with the least latest finish time, that is, with the longest path
after it; among equals the longer task.  One pass is parallel by that rule.  Further passes follow

* latest finish times with randomly perturbed durations, by turns parallel and serial, and after
  each such pass
* forward-backward improvement: every task is moved as late as it can go, latest first, then all as
  early as they can, earliest first (V. Valls, F. Ballestín, S. Quintanilla, Justification and
  RCPSP: a technique that pays, EJOR 165, 2005), which counts as two passes,

until a lower bound is reached or the passes are used up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from legato_rt.errors import UsageError
from legato_rt.order.arrays import Floats, Ints
from legato_rt.order.dag import Dag
from legato_rt.order.heft import sequence
from legato_rt.order.ranks import upward_rank


@dataclass(frozen=True, slots=True, eq=False)
class Timetable:
    """When each of n tasks runs.

    Attributes
    ----------
    start_s, finish_s : array of float64, shape (n,)
    passes : int
        How many schedules were built to find it.
    """

    start_s: Floats
    finish_s: Floats
    passes: int

    @property
    def makespan_s(self) -> float:
        """When the last task finishes."""
        return float(self.finish_s.max(initial=0.0))


def timetable(
    dag: Dag,
    seconds: npt.ArrayLike,
    demands: npt.ArrayLike,
    capacities: npt.ArrayLike,
    *,
    passes: int = 1,
    seed: int = 0,
) -> Timetable:
    """Schedule tasks that share limited resources.

    Parameters
    ----------
    dag : Dag
    seconds : array_like, shape (n,)
    demands : array_like of int, shape (n, resources)
        Units that each task needs while it runs; a task of zero seconds needs none.
    capacities : array_like of int, shape (resources,)
    passes : int
        Build at most this many schedules, and return the shortest.
    seed : int
        For the perturbed ones.
    """
    project = _Project(dag, *_checked(dag, seconds, demands, capacities))
    search = _Search(project, passes)
    search.take(project.parallel(project.urgency))
    turn = 0
    while search.goes_on:
        turn += 1
        rank = upward_rank(dag, project.seconds * 2 * _draws(seed, turn, len(dag)))
        if turn % 2:
            search.take(project.parallel(rank - project.seconds))
        else:
            search.take(project.serial(sequence(dag, rank)))
    return Timetable(search.best, search.best + project.seconds, search.used)


def broken_limits(
    dag: Dag,
    table: Timetable,
    demands: npt.ArrayLike,
    capacities: npt.ArrayLike,
) -> Iterator[str]:
    """Whatever is wrong with a timetable, in words; a valid one yields nothing."""
    start, finish = table.start_s, table.finish_s
    need, limit = np.asarray(demands), np.asarray(capacities)
    before = np.repeat(np.arange(len(dag)), np.diff(dag.successor_start))
    for edge in np.flatnonzero(start[dag.successors] < finish[before]):
        yield f"task {dag.successors[edge]} starts before task {before[edge]} has finished"
    for moment in np.unique(start):
        used = need[(start <= moment) & (moment < finish)].sum(axis=0)
        for resource in np.flatnonzero(used > limit):
            there = f"{used[resource]} of {limit[resource]}"
            yield f"resource {resource} is used by {there} at {moment:g} s"


@dataclass(frozen=True, slots=True, eq=False)
class _Project:
    """The two ways to build a schedule, on checked arrays."""

    dag: Dag
    seconds: Floats
    demands: Ints
    capacities: Ints

    @property
    def urgency(self) -> Floats:
        """By decreasing path after a task; equal ones by decreasing length, then by number."""
        after = upward_rank(self.dag, self.seconds) - self.seconds
        order = np.lexsort((-self.seconds, -after))
        key = np.empty(len(order))
        key[order] = np.arange(len(order), 0, -1)
        return key

    @property
    def bound_s(self) -> float:
        """No schedule is shorter: the longest path, and the work of each resource."""
        path = upward_rank(self.dag, self.seconds).max(initial=0.0)
        there = np.maximum(self.capacities, 1)
        return max(float(path), float((self.seconds @ self.demands / there).max(initial=0.0)))

    def parallel(self, priority: Floats) -> Floats:
        """Start whatever fits, by decreasing priority."""
        from legato_rt.order import resource_kernels

        dag = self.dag
        waiting = np.diff(dag.predecessor_start)
        return resource_kernels.parallel(
            dag.successor_start,
            dag.successors,
            waiting,
            self.seconds,
            self.demands,
            self.capacities,
            priority,
        )

    def serial(self, order: Ints, backward: bool = False) -> Floats:
        """Start each in turn as early as it can; backward, on the graph turned round."""
        from legato_rt.order import resource_kernels

        dag = self.dag
        start = dag.successor_start if backward else dag.predecessor_start
        others = dag.successors if backward else dag.predecessors
        return resource_kernels.serial(
            order.astype(np.int32), start, others, self.seconds, self.demands, self.capacities
        )


class _Search:
    """The best schedule so far, and how many may still be built."""

    def __init__(self, project: _Project, passes: int) -> None:
        if passes < 1:
            raise UsageError("at least one pass is needed")
        self.project = project
        self.left = passes
        self.used = 0
        self.best = np.zeros(0)
        self.best_s = np.inf

    @property
    def goes_on(self) -> bool:
        """Whether another schedule may be built and could be better."""
        return self.left > 0 and self.best_s > self.project.bound_s * (1 + 1e-12)

    def take(self, start: Floats) -> None:
        """Count a schedule in, and improve it if there is room for that."""
        self._keep(start)
        if self.goes_on and self.left > 1:
            self._keep(self._justified(start))

    def _keep(self, start: Floats) -> None:
        self.left -= 1
        self.used += 1
        length = float((start + self.project.seconds).max(initial=0.0))
        if length < self.best_s:
            self.best, self.best_s = start, length

    def _justified(self, start: Floats) -> Floats:
        """Everything as late, then as early as it can go."""
        seconds, position = self.project.seconds, np.empty(len(start), dtype=np.int64)
        position[self.project.dag.order] = np.arange(len(start))
        late = self.project.serial(np.lexsort((-position, -start, -(start + seconds))), True)
        self.left -= 1
        self.used += 1
        begin = (late + seconds).max(initial=0.0) - (late + seconds)
        return self.project.serial(np.lexsort((position, -late, begin)))


def _draws(seed: int, turn: int, count: int) -> Floats:
    """Numbers in [0, 1) that are the same for the same seed and turn (SplitMix64)."""
    start = (seed * 0x9E3779B97F4A7C15 + turn * 0xD1B54A32D192ED03) & 0xFFFFFFFFFFFFFFFF
    state = np.uint64(start) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(_STEP)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    state ^= state >> np.uint64(31)
    return np.asarray((state >> np.uint64(11)) / float(1 << 53))


_STEP = 0x9E3779B97F4A7C15


def _checked(
    dag: Dag, seconds: npt.ArrayLike, demands: npt.ArrayLike, capacities: npt.ArrayLike
) -> tuple[Floats, Ints, Ints]:
    times = np.ascontiguousarray(seconds, dtype=np.float64)
    need, limit = np.asarray(demands), np.asarray(capacities)
    if times.shape != (len(dag),) or not np.all((times >= 0) & np.isfinite(times)):
        raise UsageError(f"{len(dag)} times from zero up are needed")
    if need.shape != (len(dag), len(limit)):
        raise UsageError(f"demands of {len(dag)} tasks on {len(limit)} resources are needed")
    whole = need.astype(np.int64), limit.astype(np.int64)
    if (whole[0] != need).any() or (whole[1] != limit).any() or (whole[0] < 0).any():
        raise UsageError("demands and capacities are whole numbers from zero up")
    over = (whole[0] > whole[1]).any(axis=1)
    if over.any():
        raise UsageError(f"task {int(np.argmax(over))} needs more of a resource than there is")
    return times, np.ascontiguousarray(whole[0]), whole[1]
