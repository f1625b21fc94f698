"""Cost models: how long a task takes on a device, and what energy.

A policy asks a `CostModel` for an `Estimate`, the executor tells it what really happened.  There
are two: a `Table` of given times, for recorded graphs and machines that are not there, and the
`History` of this machine (`legato_rt.history`), which learns.

Nothing here reads a clock or draws a random number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from legato_rt.errors import UsageError
from legato_rt.machine import Device
from legato_rt.task import Task, Variant


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run is expected to take.

    Attributes
    ----------
    seconds : float
        On one worker, or on ``width`` of them together.
    joules : float
        Of the workers it occupies while it runs, their idle power included.
    samples : int or None
        How many runs it rests on, 0 for one inferred from other sizes; `None` for given costs,
        which need no trying.
    """

    seconds: float
    joules: float
    samples: int | None = None


class Call(Protocol):
    """What a cost model needs to know of a node."""

    @property
    def task(self) -> Task[..., Any]:
        """What it runs."""

    @property
    def args(self) -> tuple[Any, ...]:
        """Its positional arguments."""

    @property
    def kwargs(self) -> dict[str, Any] | None:
        """Its other arguments."""


class Recorded(Protocol):
    """What a table needs to know of a task of a recorded graph."""

    @property
    def name(self) -> str:
        """Its own name."""

    @property
    def cost_name(self) -> str:
        """Under what its costs are given."""

    @property
    def seconds(self) -> Mapping[str, float]:
        """Its times by device name or kind."""


class CostModel(Protocol):
    """Predicts and learns costs; ``point`` names an operating point, ``""`` the device's first."""

    def estimate(
        self, node: Call, device: Device, variant: Variant, point: str, width: int
    ) -> Estimate | None:
        """The expected cost, or `None` where nothing is known."""

    def observe(
        self,
        node: Call,
        device: Device,
        variant: Variant,
        point: str,
        width: int,
        seconds: float,
        joules: float | None = None,
    ) -> None:
        """Learn from a run that took ``seconds``, and ``joules`` if somebody measured them."""


class Table:
    """Given costs; what it does not hold cannot run there.

    Parameters
    ----------
    seconds : mapping of str to mapping of str to float
        For each task name, seconds per device name or, where that is not there, device kind, at the
        device's first operating point.
    joules : mapping of (str, str, str) to float, optional
        Energy by task name, device name or kind, and operating point, where it is not power times
        time.
    at_points : mapping of (str, str, str) to float, optional
        Seconds by task name, device name or kind, and operating point, where they are not the first
        point's divided by the relative speed.
    """

    def __init__(
        self,
        seconds: Mapping[str, Mapping[str, float]],
        joules: Mapping[tuple[str, str, str], float] | None = None,
        at_points: Mapping[tuple[str, str, str], float] | None = None,
    ) -> None:
        for task, row in seconds.items():
            for device, value in row.items():
                if not value >= 0:
                    raise UsageError(f"{task} cannot take {value!r} s on {device}")
        self._seconds = {task: dict(row) for task, row in seconds.items()}
        self._joules = dict(joules or {})
        self._at_points = dict(at_points or {})
        self._known: dict[tuple[str, str, str, int], Estimate | None] = {}

    @classmethod
    def of(cls, tasks: Iterable[Recorded]) -> Table:
        """The times that the tasks of a recorded graph have of their own.

        Raises
        ------
        UsageError
            If two tasks of one name have different times.
        """
        seconds: dict[str, Mapping[str, float]] = {}
        for task in tasks:
            if seconds.setdefault(task.cost_name, task.seconds) != task.seconds:
                raise UsageError(f"several tasks are called {task.name} and have different times")
        return cls(seconds)

    def estimate(
        self, node: Call, device: Device, variant: Variant, point: str, width: int
    ) -> Estimate | None:
        """See `CostModel.estimate`; a moldable task speeds up in proportion to its width."""
        key = node.task.name, device.name, point, width
        if key not in self._known:
            self._known[key] = self._look_up(node.task.name, device, point, width)
        return self._known[key]

    def observe(self, *run: object, joules: float | None = None) -> None:
        """Nothing: given costs stay as they are."""

    def _look_up(self, task: str, device: Device, point: str, width: int) -> Estimate | None:
        row = self._seconds.get(task, {})
        place = device.name if device.name in row else device.kind
        if place not in row:
            return None
        chosen = device.point(point)
        seconds = self._at_points.get((task, place, chosen.name), row[place] / chosen.speed) / width
        joules = self._joules.get((task, place, chosen.name))
        if joules is None:
            joules = seconds * chosen.active_w * width
        return Estimate(seconds, joules)
