"""Compiled schedule generation with shared limited resources; `resources` says what for."""

from __future__ import annotations

import numpy as np

from legato_rt.order.arrays import Floats, Ints
from legato_rt.order.jit import compiled


@compiled
def parallel(
    start: Ints,
    successors: Ints,
    waiting: Ints,
    seconds: Floats,
    demands: Ints,
    capacities: Ints,
    priority: Floats,
) -> Floats:
    """Go through time, and at each moment start whatever fits, by decreasing priority.

    ``waiting`` holds the number of predecessors of each task, and is used up.

    Returns
    -------
    array, shape (n,)
        Each task's start.
    """
    tasks = len(seconds)
    begin = np.zeros(tasks)
    free = capacities.copy()
    ready, ready_count = np.empty(tasks, dtype=np.int64), 0
    running, running_count = np.empty(tasks, dtype=np.int64), 0
    for task in range(tasks):
        if waiting[task] == 0:
            ready_count = _add(ready, ready_count, task, priority)
    now = 0.0
    while ready_count or running_count:
        kept = 0
        for at in range(ready_count):
            task = ready[at]
            if seconds[task] <= 0.0 or _fits(demands[task], free):
                if seconds[task] > 0.0:
                    free -= demands[task]
                begin[task] = now
                running[running_count] = task
                running_count += 1
            else:
                ready[kept] = task
                kept += 1
        ready_count = kept
        now = np.inf
        for at in range(running_count):
            now = min(now, begin[running[at]] + seconds[running[at]])
        left = 0
        for at in range(running_count):
            task = running[at]
            if begin[task] + seconds[task] > now:
                running[left] = task
                left += 1
                continue
            if seconds[task] > 0.0:
                free += demands[task]
            for edge in range(start[task], start[task + 1]):
                other = successors[edge]
                waiting[other] -= 1
                if waiting[other] == 0:
                    ready_count = _add(ready, ready_count, other, priority)
        running_count = left
    return begin


@compiled
def _fits(demand: Ints, free: Ints) -> bool:
    fits = True
    for r in range(len(demand)):
        fits = fits and demand[r] <= free[r]
    return fits


@compiled
def _add(ready: Ints, count: int, task: int, priority: Floats) -> int:
    """Keep the ready tasks sorted by decreasing priority, equal ones by number."""
    at = count
    while at > 0:
        other = ready[at - 1]
        if priority[other] > priority[task]:
            break
        if priority[other] == priority[task] and other < task:
            break
        ready[at] = other
        at -= 1
    ready[at] = task
    return count + 1


@compiled
def serial(
    sequence: Ints,
    start: Ints,
    predecessors: Ints,
    seconds: Floats,
    demands: Ints,
    capacities: Ints,
) -> Floats:
    """Take the tasks in sequence, and start each as early as what is planned allows.

    The use of the resources is kept between the times at which it changes.
    """
    tasks, resources = demands.shape
    begin = np.zeros(tasks)
    times = np.empty(2 * tasks + 2)
    used = np.zeros((2 * tasks + 2, resources), dtype=np.int64)
    times[0], count = 0.0, 1
    for task in sequence:
        ready = 0.0
        for edge in range(start[task], start[task + 1]):
            before = predecessors[edge]
            ready = max(ready, begin[before] + seconds[before])
        at = int(np.searchsorted(times[:count], ready, side="right")) - 1
        moment, at = _earliest(
            times, used, count, at, ready, seconds[task], demands[task], capacities
        )
        begin[task] = moment
        if seconds[task] > 0.0:
            first, count = _change(times, used, count, at, moment)
            last = first
            finish = moment + seconds[task]
            while last < count and times[last] < finish:
                last += 1
            last, count = _change(times, used, count, last - 1, finish)
            used[first:last] += demands[task]
    return begin


@compiled
def _earliest(
    times: Floats,
    used: Ints,
    count: int,
    at: int,
    ready: float,
    duration: float,
    demand: Ints,
    capacities: Ints,
) -> tuple[float, int]:
    """The first moment from ``ready`` on at which the resources last, and its interval."""
    moment = ready
    check = at
    while check < count and (times[check] < moment + duration or check == at):
        fits = True
        for r in range(len(demand)):
            if used[check, r] + demand[r] > capacities[r]:
                fits = False
                break
        if fits or duration <= 0.0:
            check += 1
        else:
            check += 1
            at = check
            moment = times[check]
    return moment, at


@compiled
def _change(times: Floats, used: Ints, count: int, at: int, moment: float) -> tuple[int, int]:
    """Make the use changeable at a moment within interval ``at``; its place, the new count."""
    if times[at] == moment:
        return at, count
    if at + 1 < count and times[at + 1] == moment:
        return at + 1, count
    for k in range(count, at + 1, -1):
        times[k] = times[k - 1]
        used[k] = used[k - 1]
    times[at + 1] = moment
    used[at + 1] = used[at]
    return at + 1, count + 1
