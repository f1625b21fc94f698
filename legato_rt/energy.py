"""Joules, and where each of them comes from.

A total is ``measured`` (a hardware counter), ``apportioned`` (a measured total shared out among
tasks) or ``modelled`` (power times time).  What nobody measured is `None`, never zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Source = Literal["measured", "apportioned", "modelled"]


@dataclass(frozen=True, slots=True)
class Reading:
    """An amount of energy and its source.

    Attributes
    ----------
    joules : float
    source : {"measured", "apportioned", "modelled"}
    """

    joules: float
    source: Source

    def __add__(self, other: Reading) -> Reading:
        weakest = max(self.source, other.source, key=_TRUST.index)
        return Reading(self.joules + other.joules, weakest)

    def __str__(self) -> str:
        return f"{self.joules:.3g} J ({self.source})"


_TRUST: tuple[Source, ...] = ("measured", "apportioned", "modelled")


@dataclass(frozen=True, slots=True)
class ConstantPower:
    """The simplest power model: one wattage while a worker computes, one while it does not.

    Attributes
    ----------
    active_w : float
        Watts of one worker that runs a task.
    idle_w : float
        Watts of one worker that waits.
    """

    active_w: float
    idle_w: float

    def busy(self, seconds: float) -> Reading:
        """Energy of one worker over ``seconds`` of computing."""
        return Reading(seconds * self.active_w, "modelled")

    def idle(self, seconds: float) -> Reading:
        """Energy of one worker over ``seconds`` of waiting."""
        return Reading(seconds * self.idle_w, "modelled")
