"""A rule that finds good pools of workers for tasks while it builds a schedule.

List scheduling alone wastes a fast worker on whatever is ready, and a slow one may take a task that
everybody waits for.  Here a task has a fastest pool, and may go to a slower one only where it will
still be done by its *deadline*: the wanted makespan less the longest path behind it, stretched by
``patience`` for the queues that it will meet.  A worker looks for, in this order:

1. tasks that are fastest on it and not better *held*, by rank;
2. tasks from elsewhere that can wait that long, the least slowed down first, with a share
   ``slack_weight`` of how far their deadline is;
3. held tasks, by rank, if no worker that they are held for is idle.

A task is held if a slower pool meets its deadline and slows it down by no more than ``1 / hold``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from legato_rt.order.arrays import Floats, Ints
from legato_rt.order.heaps import pop, push
from legato_rt.order.jit import compiled
from legato_rt.order.shop import Shop


class Rule(NamedTuple):
    """The numbers of the rule; the module says what they do.

    Attributes
    ----------
    rank, tail : array, shape (tasks,)
        What goes first, and how much path is left after a task.
    wanted_s : float
        The makespan to aim at.
    """

    rank: Floats
    tail: Floats
    wanted_s: float
    patience: float
    slack_weight: float
    hold: float


@compiled
def dispatch(
    shop: Shop, rule: Rule, best: Ints, mode: Ints, start_s: Floats, limit_s: float, spent: Ints
) -> float:
    """Build a schedule without transfers; return its makespan, infinite if over the limit.

    ``best`` is each task's fastest pool; ``mode`` and ``start_s`` are filled in, and the tasks
    that were looked at are added to ``spent``.
    """
    tasks, pools = len(best), len(shop.workers)
    waits, idle = shop.waits.copy(), shop.workers.copy()
    ready, count = np.empty(tasks, np.int32), 0
    events, times = np.empty(len(shop.pool_of) + 1, np.int32), np.empty(len(shop.pool_of) + 1)
    running, now = 0, 0.0
    for task in shop.order:
        if waits[task] == 0:
            ready[count] = task
            count += 1
    while True:
        for turn in range(3 * pools):
            step, at = turn // pools + 1, turn % pools
            while idle[at] > 0 and count > 0:
                place = _pick(shop, rule, best, ready, count, at, now, step)
                spent[0] += count
                if place < 0:
                    break
                task, count = ready[place], count - 1
                ready[place] = ready[count]
                idle[at] -= 1
                mode[task], start_s[task] = at, now
                running = push(events, times, running, task, now + shop.seconds[task, at])
        if running == 0 or times[0] > limit_s:
            return now if count == 0 and running == 0 else np.inf
        now = times[0]
        while running > 0 and times[0] <= now:
            task = pop(events, times, running)
            running -= 1
            idle[mode[task]] += 1
            count = _release(shop, task, waits, ready, count)


@compiled
def _release(shop: Shop, task: int, waits: Ints, ready: Ints, count: int) -> int:
    """Add the tasks that became ready; return how many are."""
    for edge in range(shop.successor_start[task], shop.successor_start[task + 1]):
        after = shop.successors[edge]
        waits[after] -= 1
        if waits[after] == 0:
            ready[count] = after
            count += 1
    return count


@compiled
def _pick(
    shop: Shop,
    rule: Rule,
    best: Ints,
    ready: Ints,
    count: int,
    at: int,
    now: float,
    step: int,
) -> int:
    """The place of the ready task that a worker of a pool takes in one step of the rule, or -1."""
    found, most = -1, -np.inf
    for place in range(count):
        task = ready[place]
        if step == 2:
            if best[task] == at or not _in_time(shop, rule, task, at, now):
                continue
            value = shop.seconds[task, best[task]] / shop.seconds[task, at]
            value += rule.slack_weight * (1.0 - rule.tail[task] / rule.wanted_s)
        else:
            if best[task] != at or (step == 1 and _held(shop, rule, best, task, now)):
                continue
            value = rule.rank[task]
        if value > most:
            found, most = place, value
    return found


@compiled
def _in_time(shop: Shop, rule: Rule, task: int, at: int, now: float) -> bool:
    """Whether a task that starts now in a pool meets its deadline."""
    return bool(now + shop.seconds[task, at] + rule.patience * rule.tail[task] <= rule.wanted_s)


@compiled
def _held(shop: Shop, rule: Rule, best: Ints, task: int, now: float) -> bool:
    """Whether a task is better left to a slower pool."""
    fastest = best[task]
    for at in range(len(shop.workers)):
        gain = shop.seconds[task, fastest] >= rule.hold * shop.seconds[task, at]
        if at != fastest and gain and _in_time(shop, rule, task, at, now):
            return True
    return False
