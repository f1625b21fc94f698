"""What a schedule costs: its makespan, its energy, or both, within a bound on the makespan."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from legato_rt.order.jit import compiled


class Goal(NamedTuple):
    """The numbers of a cost; less is better.

    Attributes
    ----------
    per_joule, per_second : float
        Cost is their sum, each times the energy and the makespan.
    power : int
        If not 0, cost is energy times makespan to this power instead.
    idle_w : float
        What the whole machine draws while nothing runs.
    bound_s : float
        A longer makespan is out of the question.
    """

    per_joule: float = 0.0
    per_second: float = 1.0
    power: int = 0
    idle_w: float = 0.0
    bound_s: float = np.inf


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
