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
    """Go through time, start whatever fits, by decreasing priority; each task's start.

    ``waiting`` holds the number of predecessors of each task, and is used up.
    """
    tasks = len(seconds)
    begin, free = np.zeros(tasks), capacities.copy()
    ready, running = np.empty(tasks, dtype=np.int64), np.empty(tasks, dtype=np.int64)
    readies = runs = 0
    for task in range(tasks):
        if waiting[task] == 0:
            readies = _add(ready, readies, task, priority)
    now = 0.0
    while readies or runs:
        readies, runs = _begin(ready, readies, running, runs, seconds, demands, free, begin, now)
        now = np.inf
        for at in range(runs):
            now = min(now, begin[running[at]] + seconds[running[at]])
        still = 0
        for at in range(runs):
            task = running[at]
            if begin[task] + seconds[task] > now:
                running[still] = task
                still += 1
                continue
            if seconds[task] > 0.0:
                free += demands[task]
            after = successors[start[task] : start[task + 1]]
            readies = _release(after, waiting, ready, readies, priority)
        runs = still
    return begin


@compiled
def _release(after: Ints, waiting: Ints, ready: Ints, readies: int, priority: Floats) -> int:
    """Add those that have waited for nothing else; how many are ready then."""
    for task in after:
        waiting[task] -= 1
        if waiting[task] == 0:
            readies = _add(ready, readies, task, priority)
    return readies


@compiled
def _begin(
    ready: Ints,
    readies: int,
    running: Ints,
    runs: int,
    seconds: Floats,
    demands: Ints,
    free: Ints,
    begin: Floats,
    now: float,
) -> tuple[int, int]:
    """Start the ready tasks that fit; how many are ready and running then."""
    kept = 0
    for at in range(readies):
        task = ready[at]
        if seconds[task] <= 0.0 or _fits(demands[task], free):
            if seconds[task] > 0.0:
                free -= demands[task]
            begin[task] = now
            running[runs] = task
            runs += 1
        else:
            ready[kept] = task
            kept += 1
    return kept, runs


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
