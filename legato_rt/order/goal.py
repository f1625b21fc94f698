"""What a schedule costs: its makespan, its energy, or both, within a bound on the makespan."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


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
