"""Joules, and where each of them comes from.

A total is ``measured`` (a hardware counter), ``apportioned`` (a measured total shared out among
tasks) or ``modelled`` (power times time).  What nobody measured is `None`, never zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

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


class EnergyMeter(Protocol):
    """Something that counts joules, in use since it was made.

    Attributes
    ----------
    name : str
        For people, such as ``rapl``.
    devices : tuple of str
        Names of the devices whose energy it counts, all in one sum.
    period_s : float or None
        `read` must be called at least that often; `None` if once at the end will do.
    problem : str
        Why it has stopped counting, and what to do; empty while it counts.
    """

    @property
    def name(self) -> str:
        """For people."""

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of the devices whose energy it counts."""

    @property
    def period_s(self) -> float | None:
        """`read` must be called at least that often."""

    @property
    def problem(self) -> str:
        """Why it has stopped counting; empty while it counts."""

    def read(self) -> Reading | None:
        """Joules since it was made; `None` if they were not counted, or not all of them."""

    def close(self) -> None:
        """Give back what it holds; it is not read again."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one meter said.

    Attributes
    ----------
    meter : str
    devices : tuple of str
        Names of the devices that it covers.
    energy : Reading or None
        `None` if it did not count, or not to the end.
    problem : str
        Why, where something went wrong.
    """

    meter: str
    devices: tuple[str, ...]
    energy: Reading | None
    problem: str = ""
