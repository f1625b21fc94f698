"""What there is to run on: devices, the links between their memories, and the machine they make up.

Descriptions of machines, as files, are in ``machines/*.toml``; `Machine.from_toml` reads them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from legato_rt.backend import backends
from legato_rt.energy import ConstantPower
from legato_rt.errors import SettingError

if TYPE_CHECKING:
    from legato_rt.machine_file import DeviceEntry, LinkEntry

HOST = "host"
Floats = npt.NDArray[np.float64]


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
    frequency_hz : float or None
        Its clock, where it is known.
    """

    name: str
    speed: float
    active_w: float
    frequency_hz: float | None = None


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
    memory_bytes : int or None
        How much that memory holds, where it is known.
    cores : int or None
        Cores of it, of which some may be kept from running tasks.
    flops_per_s : float or None
        Peak rate of one worker in single precision, for a first guess at unknown times.
    costs : str
        Where the times of tasks on it are from, for people.
    shares : str
        Name of the device whose cores it computes on, if it has none of its own: what runs on one
        of them slows down the other.
    exclusive : bool
        Whether its workers compute one at a time, and copy while another computes.
    sources : mapping of str to str
        Where each number is from, by its name.
    """

    name: str
    kind: str
    accepts: tuple[str, ...]
    workers: int
    power: ConstantPower
    detail: str = ""
    simulated: bool = False
    points: tuple[OperatingPoint, ...] = ()
    memory: str = HOST
    memory_bytes: int | None = None
    cores: int | None = None
    flops_per_s: float | None = None
    costs: str = ""
    shares: str = ""
    exclusive: bool = False
    sources: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

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
class Link:
    """One direction between two memories.

    Attributes
    ----------
    origin, target : str
        Names of the memories.
    bytes_per_s, latency_s : float
    joules_per_byte : float or None
        `None` where nobody knows.
    source : str
        Where the numbers are from.
    """

    origin: str
    target: str
    bytes_per_s: float
    latency_s: float
    joules_per_byte: float | None = None
    source: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Machine:
    """Devices under one roof, and the links between their memories.

    Attributes
    ----------
    devices : tuple of Device
    links : tuple of Link
    name, detail : str
        What it is called, and what it is, for people.
    """

    devices: tuple[Device, ...] = field(default=())
    links: tuple[Link, ...] = field(default=())
    name: str = ""
    detail: str = ""

    @classmethod
    def discover(cls, kinds: Container[str] | None = None) -> Machine:
        """The machine this process runs on.

        Parameters
        ----------
        kinds : container of str, optional
            Ask only the drivers of these kinds; all installed ones by default.

        Raises
        ------
        SettingError
            If a driver cannot be loaded.
        """
        asked = [b for b in backends().values() if kinds is None or b.kind in kinds]
        devices = [device for backend in asked for device in backend.discover()]
        return cls(tuple(sorted(devices, key=lambda d: (d.simulated, d.kind != "cpu", d.name))))

    @classmethod
    def from_toml(cls, path_or_name: str | Path) -> Machine:
        """Read the description of a machine.

        Parameters
        ----------
        path_or_name : str or Path
            A file, or the name of one that ships with the package; see `shipped`.

        Raises
        ------
        FormatError
            Naming the file and the field that cannot be used.
        """
        from legato_rt.machine_file import read_machine

        read = read_machine(path_or_name)
        devices = tuple(device for entry in read.device for device in _devices(entry))
        links = tuple(link for entry in read.link for link in _links(entry))
        return cls(devices, links, read.name, read.detail)

    @staticmethod
    def shipped() -> list[str]:
        """Names of the machines whose descriptions ship with the package."""
        from legato_rt.machine_file import shipped

        return shipped()

    def select(self, wanted: str | Iterable[str] | None) -> Machine:
        """Keep the devices of the given names or kinds, in that order.

        Parameters
        ----------
        wanted : str or iterable of str or None
            Names or kinds, a string separated by commas; `None` for all that are hardware of their
            own, and a kind for its real hardware if there is any.

        Raises
        ------
        SettingError
            If one of them is not there.
        """
        if wanted is None:
            own = {device.name for device in self.devices}
            kept = [d for d in self.devices if not d.simulated and d.shares not in own]
            return replace(self, devices=tuple(kept))
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
        return replace(self, devices=tuple(chosen.values()))

    def with_workers(self, kind: str, workers: int) -> Machine:
        """The same machine with another number of workers on the devices of one kind."""
        changed = (replace(d, workers=workers) if d.kind == kind else d for d in self.devices)
        return replace(self, devices=tuple(changed))

    def route(self, origin: str, target: str) -> tuple[Link, ...]:
        """The links from one memory to another: the direct one, or two by way of the host.

        Empty within one memory, and where nothing is known of the way.
        """
        if origin == target:
            return ()
        known = {(link.origin, link.target): link for link in self.links}
        direct = known.get((origin, target))
        if direct is not None:
            return (direct,)
        half = known.get((origin, HOST)), known.get((HOST, target))
        return (half[0], half[1]) if half[0] is not None and half[1] is not None else ()

    def transfer_s(self, size: float, origin: str, target: str) -> float:
        """Seconds to bring a number of bytes from memory to memory."""
        route = self.route(origin, target)
        return sum(link.latency_s + size / link.bytes_per_s for link in route)

    def transfer_j(self, size: float, origin: str, target: str) -> float | None:
        """Joules of the same, modelled; `None` where a link's are unknown."""
        total = 0.0
        for link in self.route(origin, target):
            if link.joules_per_byte is None:
                return None
            total += size * link.joules_per_byte
        return total

    def transfers(self, memories: Sequence[str]) -> tuple[Floats, Floats]:
        """Costs between all pairs of memories, from the row's to the column's.

        Returns
        -------
        seconds_per_byte, latency_s : array, shape (n, n)
        """
        routes = [[self.route(origin, target) for target in memories] for origin in memories]
        return (
            np.array([[sum(1 / x.bytes_per_s for x in way) for way in row] for row in routes]),
            np.array([[sum(x.latency_s for x in way) for way in row] for row in routes]),
        )


def _devices(entry: DeviceEntry) -> list[Device]:
    """One device, or as many as ``count`` says, named ``name:0`` and so on."""
    given = {name: getattr(entry, name) for name in _COPIED}
    points = tuple(
        OperatingPoint(p.name, p.speed, p.active_w or entry.active_w * p.power, p.frequency_hz)
        for p in entry.point
    )
    names = [entry.name]
    if entry.count is not None:
        names = [f"{entry.name}:{number}" for number in range(entry.count)]
    return [
        Device(
            name=name,
            accepts=tuple(entry.accepts or [entry.kind]),
            power=ConstantPower(entry.active_w, entry.idle_w),
            points=points,
            memory=entry.memory or (HOST if entry.kind == "cpu" else name),
            sources=dict(entry.sources),
            **given,
        )
        for name in names
    ]


_COPIED = (
    "kind",
    "workers",
    "detail",
    "simulated",
    "memory_bytes",
    "cores",
    "flops_per_s",
    "costs",
)


def _links(entry: LinkEntry) -> list[Link]:
    ends = [(entry.origin, entry.target)]
    if entry.both_ways:
        ends.append((entry.target, entry.origin))
    return [
        Link(
            origin, target, entry.bytes_per_s, entry.latency_s, entry.joules_per_byte, entry.source
        )
        for origin, target in ends
    ]
