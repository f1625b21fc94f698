"""What there is to run on: devices, and the machine they make up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from legato_rt.energy import ConstantPower
from legato_rt.errors import SettingError


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
    """

    name: str
    kind: str
    accepts: tuple[str, ...]
    workers: int
    power: ConstantPower
    detail: str = ""
    simulated: bool = False


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
