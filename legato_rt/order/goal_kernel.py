"""What a schedule costs, compiled; apart from `Goal`, so that naming one loads no Numba."""

from __future__ import annotations

import numpy as np

from legato_rt.order.goal import Goal
from legato_rt.order.jit import compiled


@compiled
def cost(goal: Goal, makespan_s: float, joules: float) -> float:
    """Cost of a schedule whose tasks take ``joules`` over what idle workers draw."""
    if makespan_s > goal.bound_s or makespan_s == np.inf:
        return np.inf
    energy = joules + goal.idle_w * makespan_s
    if goal.power > 0:
        return float(energy * makespan_s**goal.power)
    return float(goal.per_joule * energy + goal.per_second * makespan_s)


@compiled
def longest(goal: Goal, joules: float, limit: float) -> float:
    """The makespan beyond which the cost is over a limit."""
    slope = goal.per_joule * goal.idle_w + goal.per_second
    if goal.power > 0 or slope <= 0.0 or limit == np.inf:
        return goal.bound_s
    return float(min(goal.bound_s, (limit - goal.per_joule * joules) / slope))
