"""List scheduling by priority within pools of equal workers, to try many schedules quickly.

Whenever a worker is idle it takes the ready task of highest priority among those that were given to
its pool.  With transfers a task is sent to one worker of the pool as soon as it is ready, so that
its data travels while others still run, and each worker has a queue of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from legato_rt.order.arrays import Floats, Ints
from legato_rt.order.heaps import pop, push
from legato_rt.order.jit import compiled
from legato_rt.order.shop import Shop


@compiled
def listed(
    shop: Shop, priority: Floats, mode: Ints, start_s: Floats, worker: Ints, limit_s: float
) -> float:
    """The makespan; infinite once it is sure to exceed the limit.

    ``start_s`` and ``worker`` are filled in.
    """
    if shop.linked:
        return sent(shop, priority, mode, start_s, worker, limit_s)
    return shared(shop, priority, mode, start_s, worker, limit_s)


@compiled
def joules_of(shop: Shop, mode: Ints) -> float:
    """What tasks take in their modes, over what idle workers draw."""
    total = 0.0
    for task in range(len(mode)):
        total += shop.joules[task, mode[task]]
    return total


@compiled
def shared(
    shop: Shop, priority: Floats, mode: Ints, start_s: Floats, worker: Ints, limit_s: float
) -> float:
    """Without transfers: one queue for each pool."""
    tasks, pools = len(mode), len(shop.workers)
    waits, queued = shop.waits.copy(), np.zeros(pools, np.int64)
    queue, keys = np.empty((pools, tasks), np.int32), np.empty((pools, tasks))
    idle, idles = _all_idle(shop)
    events, times = np.empty(len(shop.pool_of) + 1, np.int32), np.empty(len(shop.pool_of) + 1)
    running, now = 0, 0.0
    for task in shop.order:
        if waits[task] == 0:
            at = shop.pool[mode[task]]
            queued[at] = push(queue[at], keys[at], queued[at], task, -priority[task])
    while True:
        for at in range(pools):
            while idles[at] > 0 and queued[at] > 0:
                task = pop(queue[at], keys[at], queued[at])
                queued[at] -= 1
                idles[at] -= 1
                worker[task], start_s[task] = idle[at, idles[at]], now
                running = push(events, times, running, task, now + shop.seconds[task, mode[task]])
        if running == 0:
            return now
        now = times[0]
        if now > limit_s:
            return np.inf
        while running > 0 and times[0] <= now:
            task = pop(events, times, running)
            running -= 1
            at = shop.pool[mode[task]]
            idle[at, idles[at]] = worker[task]
            idles[at] += 1
            for edge in range(shop.successor_start[task], shop.successor_start[task + 1]):
                after = shop.successors[edge]
                waits[after] -= 1
                if waits[after] == 0:
                    to = shop.pool[mode[after]]
                    queued[to] = push(queue[to], keys[to], queued[to], after, -priority[after])


@compiled
def _all_idle(shop: Shop) -> tuple[Ints, Ints]:
    """The idle workers of each pool as a stack, and how many they are."""
    pools = len(shop.workers)
    idle, idles = np.empty((pools, len(shop.pool_of)), np.int32), np.zeros(pools, np.int64)
    for worker in range(len(shop.pool_of) - 1, -1, -1):
        at = shop.pool_of[worker]
        idle[at, idles[at]] = worker
        idles[at] += 1
    return idle, idles


class Traffic(NamedTuple):
    """What is on its way, for `sent`.

    Attributes
    ----------
    queue, keys, queued : array
        A heap for each worker.
    load_s : array, shape (workers,)
        When each worker is expected to be free of all that was sent to it.
    copies : array, shape (tasks, workers)
        When the data of a task is in the memory that a worker shares; infinite if never.
    arrival : array, shape (tasks,)
        When what a task needs is there.
    sent : array of int, shape (1,)
        How many tasks were sent anywhere.
    """

    queue: Ints
    keys: Floats
    queued: Ints
    load_s: Floats
    copies: Floats
    arrival: Floats
    sent: Ints


@compiled
def sent(
    shop: Shop, priority: Floats, mode: Ints, start_s: Floats, worker: Ints, limit_s: float
) -> float:
    """With transfers: a task is sent to the worker of its pool where it is done first; one of
    mode -1 to the best of all, where it waits in order of arrival."""
    workers = len(shop.pool_of)
    waits, busy = shop.waits.copy(), np.zeros(workers, np.bool_)
    traffic = _no_traffic(len(mode), workers)
    events, times = np.empty(workers + 1, np.int32), np.empty(workers + 1)
    running, now = 0, 0.0
    for task in shop.order:
        if waits[task] == 0:
            _send(shop, traffic, task, mode[task], now, -priority[task])
    while True:
        for at in range(workers):
            if not busy[at] and traffic.queued[at] > 0:
                task = pop(traffic.queue[at], traffic.keys[at], traffic.queued[at])
                traffic.queued[at] -= 1
                busy[at], worker[task], start_s[task] = True, at, max(now, traffic.arrival[task])
                ran = mode[task] if mode[task] >= 0 else shop.pool_of[at]
                stop = start_s[task] + shop.seconds[task, ran]
                running = push(events, times, running, task, stop)
        if running == 0 or now > limit_s:
            return now if running == 0 else np.inf
        now = times[0]
        while running > 0 and times[0] <= now:
            task = pop(events, times, running)
            running -= 1
            busy[worker[task]] = False
            _done(traffic, worker[task], now)
            traffic.copies[task, shop.memory_of[worker[task]]] = now
            for edge in range(shop.successor_start[task], shop.successor_start[task + 1]):
                after = shop.successors[edge]
                waits[after] -= 1
                if waits[after] == 0:
                    _send(shop, traffic, after, mode[after], now, -priority[after])


@compiled
def _no_traffic(tasks: int, workers: int) -> Traffic:
    return Traffic(
        np.empty((workers, tasks), np.int32),
        np.empty((workers, tasks)),
        np.zeros(workers, np.int64),
        np.zeros(workers),
        np.full((tasks, workers), np.inf),
        np.empty(tasks),
        np.zeros(1, np.int64),
    )


@compiled
def _done(traffic: Traffic, at: int, now: float) -> None:
    """A worker is free: what it was expected to do is over."""
    if traffic.queued[at] == 0:
        traffic.load_s[at] = now


@compiled
def _send(shop: Shop, traffic: Traffic, task: int, mode: int, now: float, key: float) -> None:
    """Send a ready task to the worker of its pool where it is expected to be done first."""
    least, chosen, there_s = np.inf, -1, 0.0
    for at in range(len(shop.pool_of)):
        duration = shop.seconds[task, mode if mode >= 0 else shop.pool_of[at]]
        elsewhere = mode >= 0 and shop.pool[mode] != shop.pool_of[at]
        if elsewhere or traffic.load_s[at] + duration >= least:
            continue
        arrival = now
        if shop.linked:
            for edge in range(shop.predecessor_start[task], shop.predecessor_start[task + 1]):
                arrival = max(arrival, _arrival(shop, traffic, edge, at, now))
        if max(arrival, traffic.load_s[at]) + duration < least:
            least, chosen, there_s = max(arrival, traffic.load_s[at]) + duration, at, arrival
    memory = shop.memory_of[chosen]
    for edge in range(shop.predecessor_start[task], shop.predecessor_start[task + 1]):
        if shop.linked and shop.sizes[edge] > 0.0:
            arrival = _arrival(shop, traffic, edge, chosen, now)
            traffic.copies[shop.predecessors[edge], memory] = arrival
    traffic.arrival[task] = there_s
    traffic.load_s[chosen] = least
    traffic.sent[0] += 1
    key = key if mode >= 0 else float(traffic.sent[0])
    count = traffic.queued[chosen]
    traffic.queued[chosen] = push(traffic.queue[chosen], traffic.keys[chosen], count, task, key)


@compiled
def _arrival(shop: Shop, traffic: Traffic, edge: int, at: int, now: float) -> float:
    """When the data of an edge can be where a worker finds it."""
    size, before, memory = shop.sizes[edge], shop.predecessors[edge], shop.memory_of[at]
    if size == 0.0:
        return now
    best = traffic.copies[before, memory]
    for origin in range(len(shop.pool_of)):
        since = traffic.copies[before, origin]
        if since < best:
            cost = shop.latency_s[origin, memory] + size * shop.seconds_per_byte[origin, memory]
            best = min(best, max(since, now) + cost)
    return float(best)


@compiled
def replayed(
    shop: Shop, seconds: Floats, sequence: Ints, worker: Ints, start_s: Floats, finish_s: Floats
) -> None:
    """Fill in when tasks run that go to given workers in a given sequence, without transfers."""
    free_s = np.zeros(len(shop.pool_of))
    for task in sequence:
        begin = free_s[worker[task]]
        for edge in range(shop.predecessor_start[task], shop.predecessor_start[task + 1]):
            begin = max(begin, finish_s[shop.predecessors[edge]])
        start_s[task] = begin
        finish_s[task] = begin + seconds[task]
        free_s[worker[task]] = finish_s[task]
