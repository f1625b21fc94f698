"""The summary of a run: time, work per kind and device, energy with its source.

Where a meter covers devices, its joules are shared out among their tasks and their idle time, in
proportion to what the power model says of each; where none does, the model itself is what is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from legato_rt.energy import Measurement, Reading, Source
from legato_rt.machine import Device

LEAST_J = 1e-12
"""What a model says below this is nothing."""


@dataclass(frozen=True, slots=True)
class KindRow:
    """One task on one device: how many bodies ran there, how long they took together, and joules.

    The energy is ``apportioned`` where the device was measured, else ``modelled``.
    """

    task: str
    device: str
    count: int
    failed: int
    seconds: float
    energy: Reading


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """One device: its workers' time at work, its energy, and what of it no task accounts for.

    The energy is ``measured`` where a meter counts this device alone, ``apportioned`` where one
    counts it together with others, else ``modelled``.
    """

    device: str
    workers: int
    busy_s: float
    energy: Reading
    idle: Reading
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
    meters : tuple of Measurement
        What each meter said.
    """

    seconds: float
    kinds: tuple[KindRow, ...]
    devices: tuple[DeviceRow, ...]
    coarse: int
    meters: tuple[Measurement, ...] = ()

    @property
    def tasks(self) -> int:
        """Bodies that ran."""
        return sum(row.count for row in self.kinds)

    @property
    def energy(self) -> Reading:
        """Energy of all devices, idle time included."""
        total = Reading(0.0, "measured")
        covered: set[str] = set()
        for meter in self.meters:
            if meter.energy is not None:
                total += meter.energy
                covered.update(meter.devices)
        for row in self.devices:
            if row.device not in covered:
                total += row.energy
        return total

    def energy_of(self, task: str, device: str, seconds: float) -> Reading | None:
        """Energy of one body of a task: the part of its row that its time is.

        Parameters
        ----------
        task, device : str
            What ran where.
        seconds : float
            How long it took, for instance by its record in the trace.

        Returns
        -------
        Reading or None
            `None` if there is no such row, or no time in it.
        """
        for row in self.kinds:
            if (row.task, row.device) == (task, device) and row.seconds > 0:
                return Reading(row.energy.joules * seconds / row.seconds, row.energy.source)
        return None

    def __str__(self) -> str:
        lines = [f"{self.tasks} tasks in {self.seconds:.3f} s, {self.energy}"]
        if self.kinds:
            width = max(len(row.task) for row in self.kinds)
            lines += [
                f"  {row.task:<{width}}  {row.device:<10} {row.count:>8} x "
                f"{row.seconds / row.count * 1e6:>10.1f} us  {row.energy}"
                + (f"  ({row.failed} failed)" if row.failed else "")
                for row in self.kinds
            ]
        for device in self.devices:
            busy = device.busy_s / max(self.seconds * device.workers, 1e-12)
            label = " (simulated)" if device.simulated else ""
            lines.append(
                f"  {device.device}{label}: {device.workers} workers, {busy:.0%} busy, "
                f"{device.energy}, of which idle {device.idle}"
            )
        lines += [f"  {meter.meter}: {meter.problem}" for meter in self.meters if meter.problem]
        if self.coarse:
            lines.append(f"  {self.coarse} views were ordered more than needed")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _Modelled:
    """One device by its power model."""

    device: Device
    tasks: tuple[tuple[str, int, int, float], ...]
    busy_s: float
    idle_j: float

    @property
    def joules(self) -> float:
        return self.busy_s * self.device.power.active_w + self.idle_j

    def rows(self, factor: float, extra_j: float, sources: tuple[Source, Source]) -> _Rows:
        """The rows of the device and its tasks, all joules but ``extra_j`` times a factor."""
        whole, part = sources
        watts = self.device.power.active_w * factor
        idle = Reading(self.idle_j * factor + extra_j, part)
        energy = Reading(self.joules * factor + extra_j, whole)
        name = self.device.name
        return (
            DeviceRow(name, self.device.workers, self.busy_s, energy, idle, self.device.simulated),
            [
                KindRow(task, name, count, failed, spent_s, Reading(spent_s * watts, part))
                for task, count, failed, spent_s in self.tasks
            ],
        )


_Rows = tuple[DeviceRow, list[KindRow]]
Totals = Mapping[tuple[str, str], tuple[int, int, int]]


def _modelled(seconds: float, device: Device, totals: Totals) -> _Modelled:
    tasks = tuple(
        (task, count, failed, ns / 1e9)
        for (task, name), (count, failed, ns) in sorted(totals.items())
        if name == device.name
    )
    busy_s = sum(spent_s for *_, spent_s in tasks)
    idle_s = max(seconds * device.workers - busy_s, 0.0)
    return _Modelled(device, tasks, busy_s, idle_s * device.power.idle_w)


def _apportioned(total: Reading, covered: Sequence[_Modelled]) -> list[_Rows]:
    """Share a measured total out among the devices that it covers."""
    whole: Source = total.source if len(covered) == 1 else "apportioned"
    modelled_j = sum(one.joules for one in covered)
    says = modelled_j > LEAST_J
    factor = total.joules / modelled_j if says else 0.0
    # Where the model says nothing, nobody can say who used it: it is idle.
    extra_j = 0.0 if says else total.joules / len(covered)
    return [one.rows(factor, extra_j, (whole, "apportioned")) for one in covered]


def summarise(
    seconds: float,
    devices: Iterable[Device],
    totals: Totals,
    coarse: int,
    meters: Sequence[Measurement] = (),
) -> Report:
    """Make a report.

    Parameters
    ----------
    seconds : float
    devices : iterable of Device
    totals : mapping of (task, device) to (count, failed, nanoseconds)
    coarse : int
    meters : sequence of Measurement
        No two of them cover one device.
    """
    modelled = {device.name: _modelled(seconds, device, totals) for device in devices}
    rows = {name: one.rows(1.0, 0.0, ("modelled", "modelled")) for name, one in modelled.items()}
    for meter in meters:
        covered = [modelled[name] for name in meter.devices if name in modelled]
        if meter.energy is not None and covered:
            shares = _apportioned(meter.energy, covered)
            rows.update((row.device, (row, kinds)) for row, kinds in shares)
    kinds = sorted((kind for _, own in rows.values() for kind in own), key=_place)
    return Report(
        seconds, tuple(kinds), tuple(row for row, _ in rows.values()), coarse, tuple(meters)
    )


def _place(row: KindRow) -> tuple[str, str]:
    return row.task, row.device
