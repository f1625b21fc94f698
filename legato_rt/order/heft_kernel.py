"""The compiled inner loop of list scheduling on heterogeneous workers."""

from __future__ import annotations

import numpy as np

from legato_rt.order.arrays import Floats, Ints
from legato_rt.order.gaps import Gaps, find, new_gaps, occupy
from legato_rt.order.jit import compiled


@compiled
def place(
    sequence: Ints,
    start: Ints,
    predecessors: Ints,
    sizes: Floats,
    seconds: Floats,
    seconds_per_byte: Floats,
    latency_s: Floats,
    release_s: Floats,
    available_s: Floats,
    penalty_s: Floats,
    insertion: bool,
) -> tuple[Ints, Floats, Floats]:
    """Give each task, in sequence, the worker on which it finishes first.

    ``penalty_s`` is added to the finish for the comparison alone; it has one row for all tasks or
    one for each.
    """
    tasks, workers = seconds.shape
    gaps = new_gaps(tasks, available_s)
    where = np.empty(tasks, dtype=np.int32)
    begin, finish = np.empty(tasks), np.empty(tasks)
    ready = np.empty(workers)
    for task in sequence:
        ready[:] = release_s[task]
        for edge in range(start[task], start[task + 1]):
            before = predecessors[edge]
            origin = where[before]
            row, latency = seconds_per_byte[origin], latency_s[origin]
            _arrive(ready, origin, finish[before], sizes[edge], row, latency)
        penalty = penalty_s[task if len(penalty_s) > 1 else 0]
        chosen = _choose(gaps, ready, seconds[task], penalty, insertion, begin, task)
        where[task] = chosen
        finish[task] = begin[task] + seconds[task, chosen]
    return where, begin, finish


@compiled
def _arrive(
    ready: Floats, origin: int, finish: float, size: float, row: Floats, latency: Floats
) -> None:
    """Put off a task's start on every worker until a predecessor's data can be there."""
    for worker in range(len(ready)):
        arrival = finish
        if worker != origin and size > 0.0:
            arrival += latency[worker] + size * row[worker]
        ready[worker] = max(ready[worker], arrival)


@compiled
def _choose(
    gaps: Gaps,
    ready: Floats,
    seconds: Floats,
    penalty: Floats,
    insertion: bool,
    begin: Floats,
    task: int,
) -> int:
    """The worker on which a task finishes first; its place there is taken, its start noted."""
    least = np.inf
    chosen, position, index = -1, -1, 0
    for worker in range(len(ready)):
        duration = seconds[worker]
        if not insertion and duration > 0.0:
            ready[worker] = max(ready[worker], gaps.free_from[worker])
        if ready[worker] + duration + penalty[worker] >= least:
            continue
        at, block, gap = find(gaps, worker, ready[worker], duration)
        score = at + duration + penalty[worker]
        if score < least:
            least, chosen, position, index = score, worker, block, gap
            begin[task] = at
    occupy(gaps, chosen, position, index, begin[task], seconds[chosen])
    return chosen
