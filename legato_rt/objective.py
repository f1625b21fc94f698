"""What a schedule is to be good for."""

from __future__ import annotations

import math
from dataclasses import dataclass

from legato_rt.errors import SettingError


@dataclass(frozen=True, slots=True)
class Objective:
    """How much energy counts against time, and how much slower a run may get for it.

    Parameters
    ----------
    energy_weight : float
        From 0, only time counts, to 1, only energy counts.
    slowdown_bound : float, optional
        The longest makespan allowed, as a multiple of the one reached for time alone.
    time_power : int
        What is minimised with the bound unset is energy times the time to this power, if it is not
        0: 1 for the energy-delay product, 2 for the energy-delay-squared product.

    Raises
    ------
    SettingError
        If a value is out of range.
    """

    energy_weight: float = 0.0
    slowdown_bound: float | None = None
    time_power: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.energy_weight <= 1:
            raise SettingError(f"energy_weight is from 0 to 1, not {self.energy_weight!r}")
        bound = self.slowdown_bound
        if bound is not None and not (bound >= 1 and math.isfinite(bound)):
            raise SettingError(f"slowdown_bound is a number from 1 on, not {bound!r}")
        if self.time_power not in (0, 1, 2):
            raise SettingError(f"time_power is 0, 1 or 2, not {self.time_power!r}")

    @property
    def counts_energy(self) -> bool:
        """Whether energy plays any part."""
        return self.energy_weight > 0 or self.time_power > 0

    def score(self, energy: float, time: float) -> float:
        """What a choice costs, from its energy and time, each as a multiple of the least possible;
        less is better."""
        if self.time_power:
            return energy * time**self.time_power
        return self.energy_weight * energy + (1 - self.energy_weight) * time


TIME = Objective()

OBJECTIVES: dict[str, Objective] = {
    "time": TIME,
    "energy": Objective(energy_weight=1.0),
    "balanced": Objective(energy_weight=0.5),
    "edp": Objective(energy_weight=0.5, time_power=1),
    "ed2p": Objective(energy_weight=1 / 3, time_power=2),
}
"""The objectives that have a name."""


def make_objective(objective: str | Objective) -> Objective:
    """An objective from its name; an unknown one raises `SettingError`."""
    if isinstance(objective, Objective):
        return objective
    if objective not in OBJECTIVES:
        raise SettingError(f"objective {objective!r} is none of {', '.join(OBJECTIVES)}")
    return OBJECTIVES[objective]
