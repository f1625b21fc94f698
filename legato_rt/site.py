"""Where a policy works: the machine, what tasks cost on it, what is asked for, where data lies."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from legato_rt.costs import CostModel, Table
from legato_rt.machine import Device, Machine
from legato_rt.objective import TIME, Objective


class Whereabouts(Protocol):
    """Knows where the data of tasks lies.

    Attributes
    ----------
    moves : bool
        Whether anything ever has to be brought anywhere.
    """

    @property
    def moves(self) -> bool: ...

    def transfer(self, node: Any, device: Device, now: float) -> tuple[float, float]:
        """Seconds and joules to bring what a node needs, and lacks there, to a device's memory."""

    def bring(self, node: Any, device: Device, now: float) -> None:
        """A node was placed on a device: its data will be brought there."""


class Everywhere:
    """All data is at hand on every device.

    Attributes
    ----------
    joules : dict
        Empty: no copy is made.
    """

    moves = False

    def __init__(self) -> None:
        self.joules: dict[str, float] = {}

    def transfer(self, node: Any, device: Device, now: float) -> tuple[float, float]:
        """Nothing to bring."""
        return 0.0, 0.0

    def bring(self, node: Any, device: Device, now: float) -> None:
        """Nothing to bring."""

    def arrival(self, node: Any, device: Device, now: float) -> float:
        """At once."""
        return now

    def wrote(self, node: Any, device: Device, now: float) -> None:
        """Nothing to keep."""


@dataclass(frozen=True, slots=True)
class Site:
    """What a policy that predicts is given before it is attached.

    Attributes
    ----------
    machine : Machine
    costs : CostModel
    objective : Objective
    power_cap_w : float or None
        What the whole machine may draw at any time.
    data : Whereabouts
    prefetches : bool
        Whether transfers start as soon as a task is placed, while others still run; else the worker
        makes them before the body.
    seed : int
        For draws of what is tried again.
    """

    machine: Machine
    costs: CostModel = field(default_factory=lambda: Table({}))
    objective: Objective = TIME
    power_cap_w: float | None = None
    data: Whereabouts = field(default_factory=Everywhere)
    prefetches: bool = False
    seed: int = 0
