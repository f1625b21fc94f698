"""The compiled inner loop of list scheduling on heterogeneous workers."""

from __future__ import annotations

import numpy as np

from legato_rt.order.arrays import Floats, Ints
from legato_rt.order.gaps import find, new_gaps, occupy
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
            origin, at, size = where[before], finish[before], sizes[edge]
            for worker in range(workers):
                arrival = at
                if worker != origin and size > 0.0:
                    arrival += latency_s[origin, worker] + size * seconds_per_byte[origin, worker]
                ready[worker] = max(ready[worker], arrival)
        least = np.inf
        chosen, position, index = -1, -1, 0
        row = task if len(penalty_s) > 1 else 0
        for worker in range(workers):
            duration = seconds[task, worker]
            if not insertion and duration > 0.0:
                ready[worker] = max(ready[worker], gaps.free_from[worker])
            if ready[worker] + duration + penalty_s[row, worker] >= least:
                continue
            at, block, gap = find(gaps, worker, ready[worker], duration)
            score = at + duration + penalty_s[row, worker]
            if score < least:
                least, chosen, position, index = score, worker, block, gap
                begin[task] = at
        finish[task] = begin[task] + seconds[task, chosen]
        where[task] = chosen
        occupy(gaps, chosen, position, index, begin[task], seconds[task, chosen])
    return where, begin, finish
