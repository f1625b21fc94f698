"""The summary of a run: time, work per kind and device, energy with its source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from legato_rt.energy import Reading
from legato_rt.machine import Device


@dataclass(frozen=True, slots=True)
class KindRow:
    """One task on one device: how many bodies ran there, and how long they took together."""

    task: str
    device: str
    count: int
    failed: int
    seconds: float


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """One device: its workers' time at work, and its energy."""

    device: str
    workers: int
    busy_s: float
    energy: Reading
    simulated: bool


@dataclass(frozen=True, slots=True)
class Report:
    """What a runtime did so far.

    Attributes
    ----------
    seconds : float
        From the opening of the runtime until now, or until it closed.
    kinds : tuple of KindRow
    devices : tuple of DeviceRow
    coarse : int
        Views that were ordered more than needed, because their exact overlap was too hard.
    """

    seconds: float
    kinds: tuple[KindRow, ...]
    devices: tuple[DeviceRow, ...]
    coarse: int

    @property
    def tasks(self) -> int:
        """Bodies that ran."""
        return sum(row.count for row in self.kinds)

    @property
    def energy(self) -> Reading:
        """Energy of all devices, idle time included."""
        total = Reading(0.0, "measured")
        for row in self.devices:
            total += row.energy
        return total

    def __str__(self) -> str:
        lines = [f"{self.tasks} tasks in {self.seconds:.3f} s, {self.energy}"]
        if self.kinds:
            width = max(len(row.task) for row in self.kinds)
            lines += [
                f"  {row.task:<{width}}  {row.device:<10} {row.count:>8} x "
                f"{row.seconds / row.count * 1e6:>10.1f} us"
                + (f"  ({row.failed} failed)" if row.failed else "")
                for row in self.kinds
            ]
        for device in self.devices:
            busy = device.busy_s / max(self.seconds * device.workers, 1e-12)
            label = " (simulated)" if device.simulated else ""
            lines.append(
                f"  {device.device}{label}: {device.workers} workers, {busy:.0%} busy, "
                f"{device.energy}"
            )
        if self.coarse:
            lines.append(f"  {self.coarse} views were ordered more than needed")
        return "\n".join(lines)


def summarise(
    seconds: float,
    devices: Iterable[Device],
    totals: Mapping[tuple[str, str], tuple[int, int, int]],
    coarse: int,
) -> Report:
    """Make a report.

    Parameters
    ----------
    seconds : float
    devices : iterable of Device
    totals : mapping of (task, device) to (count, failed, nanoseconds)
    coarse : int
    """
    kinds = [
        KindRow(task, device, count, failed, ns / 1e9)
        for (task, device), (count, failed, ns) in sorted(totals.items())
    ]
    rows = []
    for device in devices:
        busy = sum(row.seconds for row in kinds if row.device == device.name)
        idle = max(seconds * device.workers - busy, 0.0)
        energy = device.power.busy(busy) + device.power.idle(idle)
        rows.append(DeviceRow(device.name, device.workers, busy, energy, device.simulated))
    return Report(seconds, tuple(kinds), tuple(rows), coarse)
