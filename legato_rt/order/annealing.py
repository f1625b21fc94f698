"""Improve a list schedule step by step: other priorities and other groups for single tasks.

Simulated annealing (S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi, Science 220, 1983): a step that
makes the schedule longer is taken with a chance that falls with the length and with time.
"""

from __future__ import annotations

import numpy as np

from legato_rt.order.arrays import Floats, Ints
from legato_rt.order.jit import compiled
from legato_rt.order.listing import listed
from legato_rt.order.shop import Shop

WORST = 30.0
"""A schedule is not looked at further than this many temperatures above the current one."""


@compiled
def anneal(
    shop: Shop, priority: Floats, group: Ints, steps: int, temperature: float, seed: int
) -> float:
    """Improve ``priority`` and ``group`` in place; return the makespan that they give.

    ``temperature`` is where it begins, as a share of the makespan.
    """
    np.random.seed(seed)
    tasks = len(priority)
    start_s, worker = np.empty(tasks), np.empty(tasks, np.int32)
    current = listed(shop, priority, group, start_s, worker, np.inf)
    least, best_priority, best_group = current, priority.copy(), group.copy()
    span = priority.max() - priority.min()
    for step in range(steps):
        heat = temperature * current * (1.0 - step / steps) + 1e-12 * least
        one, other = np.random.randint(tasks), np.random.randint(tasks)
        old_one, old_other, old_group = priority[one], priority[other], group[one]
        kind = np.random.random()
        if kind < 0.5:
            priority[one] = old_one + np.random.normal() * span * 0.1
        elif kind < 0.7:
            priority[one], priority[other] = old_other, old_one
        else:
            group[one] = np.random.randint(shop.seconds.shape[1])
            if group[one] == old_group or not np.isfinite(shop.seconds[one, group[one]]):
                group[one] = old_group
                continue
        found = listed(shop, priority, group, start_s, worker, current + WORST * heat)
        if found <= current or np.random.random() < np.exp((current - found) / heat):
            current = found
            if current < least:
                least, best_priority[:], best_group[:] = current, priority, group
        else:
            priority[one], priority[other], group[one] = old_one, old_other, old_group
    priority[:], group[:] = best_priority, best_group
    return least
