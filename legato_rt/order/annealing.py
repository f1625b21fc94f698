"""Improve a list schedule step by step: other priorities and other modes for single tasks.

Simulated annealing (S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi, Science 220, 1983): a step that
makes the schedule worse is taken with a chance that falls with the difference and with time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from legato_rt.order.arrays import Floats, Ints
from legato_rt.order.goal import Goal
from legato_rt.order.goal_kernel import cost, longest
from legato_rt.order.jit import compiled
from legato_rt.order.listing import joules_of, listed
from legato_rt.order.shop import Shop

WORST = 30.0
"""A schedule is not looked at further than this many temperatures above the current one."""

JITTER, SWAP, SINGLE = 0.45, 0.6, 0.9
"""Up to which draw a step moves a priority, swaps two, or gives one task another mode; what is left
gives many tasks of a kind another one."""


class State(NamedTuple):
    """What is annealed, and what it was before the last step.

    Attributes
    ----------
    priority, mode : array, shape (tasks,)
    old_priority, old_mode : array, shape (tasks,)
    """

    priority: Floats
    mode: Ints
    old_priority: Floats
    old_mode: Ints


@compiled
def anneal(
    shop: Shop,
    goal: Goal,
    kind: Ints,
    priority: Floats,
    mode: Ints,
    steps: int,
    temperature: float,
    seed: int,
) -> float:
    """Improve ``priority`` and ``mode`` in place; return the cost that they come to.

    ``temperature`` is where it begins, as a share of the cost; ``kind`` says which tasks are alike.
    """
    np.random.seed(seed)
    state = State(priority.copy(), mode.copy(), priority.copy(), mode.copy())
    start_s, worker = np.empty(len(priority)), np.empty(len(priority), np.int32)
    joules = joules_of(shop, state.mode)
    makespan_s = listed(shop, state.priority, state.mode, start_s, worker, goal.bound_s)
    current = least = cost(goal, makespan_s, joules)
    span = priority.max() - priority.min()
    for step in range(steps):
        heat = temperature * current * (1.0 - step / steps) + 1e-12 * least
        one = _step(shop, state, kind, span)
        if one == -1:
            continue
        if goal.per_joule > 0.0 or goal.power > 0:
            joules = joules_of(shop, state.mode)
        limit_s = longest(goal, joules, current + WORST * heat)
        makespan_s = listed(shop, state.priority, state.mode, start_s, worker, limit_s)
        found = cost(goal, makespan_s, joules)
        if found <= current or np.random.random() < np.exp((current - found) / heat):
            current = found
            _copy(state.priority, state.mode, state.old_priority, state.old_mode, one)
            if current < least:
                least, priority[:], mode[:] = current, state.priority, state.mode
        else:
            _copy(state.old_priority, state.old_mode, state.priority, state.mode, one)
    return least


@compiled
def _copy(priority: Floats, mode: Ints, to_priority: Floats, to_mode: Ints, one: int) -> None:
    """Copy what a step changed: one task's, or all for -2."""
    if one >= 0:
        to_priority[one], to_mode[one] = priority[one], mode[one]
    else:
        to_priority[:], to_mode[:] = priority, mode


@compiled
def _step(shop: Shop, state: State, kind: Ints, span: float) -> int:
    """Change the state; return the task that was changed, -1 for none and -2 for several."""
    tasks, modes = len(kind), shop.seconds.shape[1]
    one, draw = np.random.randint(tasks), np.random.random()
    if draw < JITTER:
        state.priority[one] += np.random.normal() * span * 0.1
        return one
    if draw < SWAP:
        other = np.random.randint(tasks)
        state.priority[one], state.priority[other] = state.priority[other], state.priority[one]
        return -2
    wanted = np.random.randint(modes)
    if wanted == state.mode[one] or shop.seconds[one, wanted] == np.inf:
        return -1
    before = state.mode[one]
    if draw < SINGLE or modes == len(shop.workers):
        state.mode[one] = wanted
        return one
    share = 0.5 ** np.random.randint(6)
    for task in range(tasks):
        alike = kind[task] == kind[one] and state.mode[task] == before
        if alike and shop.seconds[task, wanted] < np.inf and np.random.random() < share:
            state.mode[task] = wanted
    return -2
