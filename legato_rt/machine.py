"""What there is to run on: devices, and the machine they make up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from legato_rt.energy import ConstantPower
from legato_rt.errors import SettingError


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """A state that a device can be put in, such as a pair of clocks.

    Attributes
    ----------
    name : str
    speed : float
        Relative to the device's first point: a task takes its time there divided by this.
    active_w : float
        Watts of one worker that runs a task.
    """

    name: str
    speed: float
    active_w: float


@dataclass(frozen=True, slots=True)
class Device:
    """Something that runs tasks.

    Attributes
    ----------
    name : str
        Unique within the machine, for instance ``cpu`` or ``opencl:0``.
    kind : str
        The driver's name.
    accepts : tuple of str
        Kinds of variants that it runs, best first.
    workers : int
        How many tasks it runs at once.
    power : ConstantPower
        Watts of one worker.
    detail : str
        What hardware it is, for people.
    simulated : bool
        Whether it only stands for hardware.
    points : tuple of OperatingPoint
        The states it can be put in, the usual one first; empty if there is only one.
    memory : str
        The memory that its tasks work in; devices with the same one share it.
    """

    name: str
    kind: str
    accepts: tuple[str, ...]
    workers: int
    power: ConstantPower
    detail: str = ""
    simulated: bool = False
    points: tuple[OperatingPoint, ...] = ()
    memory: str = "host"

    def point(self, name: str = "") -> OperatingPoint:
        """An operating point by name; without one, the usual one."""
        if not self.points:
            return OperatingPoint("", 1.0, self.power.active_w)
        if not name:
            return self.points[0]
        for point in self.points:
            if point.name == name:
                return point
        known = ", ".join(p.name for p in self.points)
        raise SettingError(f"{self.name} has no operating point {name!r}; there is {known}")


@dataclass(frozen=True, slots=True)
class Machine:
    """Devices under one roof."""

    devices: tuple[Device, ...] = field(default=())

    def select(self, wanted: str | Iterable[str] | None) -> Machine:
        """Keep the devices of the given names or kinds, in that order.

        Parameters
        ----------
        wanted : str or iterable of str or None
            Names or kinds, a string separated by commas; `None` for all that are real hardware,
            and a kind for its real hardware if there is any.

        Raises
        ------
        SettingError
            If one of them is not there.
        """
        if wanted is None:
            return Machine(tuple(d for d in self.devices if not d.simulated))
        names = wanted.split(",") if isinstance(wanted, str) else list(wanted)
        chosen: dict[str, Device] = {}
        for name in (n.strip() for n in names):
            found = [d for d in self.devices if name == d.name]
            found = found or [d for d in self.devices if name == d.kind and not d.simulated]
            found = found or [d for d in self.devices if name == d.kind]
            if not found:
                there = ", ".join(d.name for d in self.devices) or "nothing"
                raise SettingError(f"no device {name!r} on this machine; there is {there}")
            chosen.update((d.name, d) for d in found)
        return Machine(tuple(chosen.values()))

    def with_workers(self, kind: str, workers: int) -> Machine:
        """The same machine with another number of workers on the devices of one kind."""
        return Machine(
            tuple(replace(d, workers=workers) if d.kind == kind else d for d in self.devices)
        )
