"""Look for the numbers of the dispatch rule that give the best schedule.

Tasks fall into kinds; each kind has two weights, of its time in the rank and in the path behind a
task.  A quarter of the trials are anywhere, the others near the best numbers so far.
"""

from __future__ import annotations

import numpy as np

from legato_rt.order.arrays import Floats, Ints
from legato_rt.order.dispatch import Rule, dispatch
from legato_rt.order.goal import Goal
from legato_rt.order.goal_kernel import cost, longest
from legato_rt.order.jit import compiled
from legato_rt.order.listing import joules_of, listed
from legato_rt.order.shop import Shop

PATIENCE, SLACK, HOLD, WANTED = 0, 1, 2, 3


@compiled
def search(
    shop: Shop,
    goal: Goal,
    kind: Ints,
    best: Ints,
    holds: Floats,
    unit_s: float,
    effort: int,
    seed: int,
    mode: Ints,
    start_s: Floats,
) -> float:
    """Try rules for as long as ``effort`` looks at a task last; return the least cost.

    ``mode`` and ``start_s`` hold its schedule at the end.  ``best`` is each task's fastest pool,
    ``holds`` are values of `Rule.hold` to try, and wanted makespans are multiples of ``unit_s``.
    """
    np.random.seed(seed)
    spent = np.zeros(1, np.int64)
    tasks, weights = len(kind), 2 * (kind.max() + 1)
    numbers = np.concatenate((np.ones(weights), np.array([1.0, 0.0, holds[0], 1.2])))
    kept, least = numbers.copy(), np.inf
    trial_mode, trial_start = np.zeros(tasks, np.int32), np.empty(tasks)
    worker = np.empty(tasks, np.int32)
    fastest = np.array([shop.seconds[task, best[task]] for task in range(tasks)])
    while spent[0] < effort:
        if spent[0] > 0:
            anywhere = spent[0] < effort // 4 or np.random.random() < 0.15
            _vary(numbers, kept, weights, holds, anywhere)
        spent[0] += tasks
        rule, limit_s = _rule(shop, kind, fastest, numbers, unit_s), longest(goal, 0.0, least)
        makespan_s = dispatch(shop, rule, best, trial_mode, trial_start, limit_s, spent)
        if makespan_s < np.inf and shop.linked:
            makespan_s = listed(shop, -trial_start, trial_mode, trial_start, worker, limit_s)
        found = cost(goal, makespan_s, joules_of(shop, trial_mode))
        if found < least:
            least, kept[:], mode[:], start_s[:] = found, numbers, trial_mode, trial_start
    return least


@compiled
def _vary(numbers: Floats, kept: Floats, weights: int, holds: Floats, anywhere: bool) -> None:
    """Set the numbers anywhere, or near those that were kept."""
    if anywhere:
        for i in range(weights):
            numbers[i] = np.exp(0.4 * np.random.normal())
        numbers[weights + PATIENCE] = 0.7 + 1.5 * np.random.random()
        numbers[weights + SLACK] = max(0.0, np.random.random() - 0.5)
        numbers[weights + HOLD] = holds[np.random.randint(len(holds))]
        numbers[weights + WANTED] = 1.0 + 0.5 * np.random.random()
        return
    numbers[:] = kept
    for _ in range(1 + np.random.randint(3)):
        i = np.random.randint(weights + 4)
        if i < weights:
            numbers[i] *= np.exp(0.2 * np.random.normal())
        elif i == weights + PATIENCE:
            numbers[i] *= np.exp(0.1 * np.random.normal())
        elif i == weights + SLACK:
            numbers[i] = max(0.0, numbers[i] + 0.1 * np.random.normal())
        elif i == weights + HOLD:
            numbers[i] = holds[np.random.randint(len(holds))]
        else:
            numbers[i] *= np.exp(0.03 * np.random.normal())


@compiled
def _rule(shop: Shop, kind: Ints, fastest: Floats, numbers: Floats, unit_s: float) -> Rule:
    """The rule of some numbers, with its ranks."""
    kinds = (len(numbers) - 4) // 2
    rank, tail = np.zeros(len(kind)), np.zeros(len(kind))
    for place in range(len(kind) - 1, -1, -1):
        task = shop.order[place]
        above, behind = 0.0, 0.0
        for edge in range(shop.successor_start[task], shop.successor_start[task + 1]):
            after = shop.successors[edge]
            above = max(above, rank[after])
            behind = max(behind, tail[after] + fastest[after] * numbers[kinds + kind[after]])
        rank[task] = above + fastest[task] * numbers[kind[task]]
        tail[task] = behind
    last = 2 * kinds
    return Rule(
        rank,
        tail,
        numbers[last + WANTED] * unit_s,
        numbers[last + PATIENCE],
        numbers[last + SLACK],
        numbers[last + HOLD],
    )
