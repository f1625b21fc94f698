"""Which variants of a task a machine can run, worked out once per task; and where one node goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from legato_rt.errors import PlacementError
from legato_rt.residence import Residence
from legato_rt.task import Task, Variant


class Candidate(NamedTuple):
    """One way to run a node, and what it is expected to cost.

    Attributes
    ----------
    device : str
    worker : int
        The worker of the device that is free first.
    variant : Variant
    point : str
        Name of the operating point, empty for the device's first.
    width : int
        How many workers run it together.
    start_s : float
        When it would start, on the executor's clock: after what waits there and its transfers.
    transfer_s : float
        Of that, the time to bring its data.
    seconds : float
        How long the body would take.
    joules : float
        What it would add to the energy of the machine while it runs.
    samples : int or None
        How many runs the estimate rests on, 0 for an inferred one, -1 for none at all; `None` where
        costs are given.
    """

    device: str
    worker: int
    variant: Variant
    point: str
    width: int
    start_s: float
    transfer_s: float
    seconds: float
    joules: float
    samples: int | None

    @property
    def finish_s(self) -> float:
        """When it would be done."""
        return self.start_s + self.seconds


class Choice:
    """The variant to run on each device, for nodes with the same outcome of ``when``.

    Attributes
    ----------
    devices : frozenset of str
        Names of the devices that can run the node.
    by_device : dict of str to Variant
    """

    __slots__ = ("by_device", "devices")

    def __init__(self, by_device: Mapping[str, Variant]) -> None:
        self.by_device = dict(by_device)
        self.devices = frozenset(by_device)

    def without(self, device: str) -> Choice:
        """The same choice with one device less."""
        return Choice({name: v for name, v in self.by_device.items() if name != device})


HOST = Choice({})
"""The choice of a node that stands for the program's own use of data: no device runs it."""


class Plan:
    """What one runtime knows about one task.

    Parameters
    ----------
    task : Task
    devices : mapping of str to sequence of str
        Names of the devices, each with the kinds of variants that it runs, best first.
    reproducible : bool
        Keep to one device, chosen by the task alone.
    residence : Residence or None
        What the memories of the devices cannot take.

    Attributes
    ----------
    source : tuple of Variant
        The task's variants that it was made from.
    fixed : Choice or None
        The choice, if it does not depend on the arguments.
    """

    __slots__ = (
        "_cache",
        "_reproducible",
        "_residence",
        "devices",
        "fixed",
        "source",
        "task",
        "variants",
    )

    def __init__(
        self,
        task: Task[..., Any],
        devices: Mapping[str, Sequence[str]],
        reproducible: bool,
        residence: Residence | None = None,
    ) -> None:
        self.task = task
        self.devices = devices
        self._reproducible = reproducible
        self._residence = residence
        self._cache: dict[tuple[tuple[bool, ...], frozenset[str]], Choice] = {}
        # Declared last comes first; the reference is what is left when nothing else fits.
        self.source = task.variants
        self.variants: tuple[Variant, ...] = task.variants[::-1]
        self.fixed: Choice | None = None
        if all(v.when is None for v in self.variants):
            choice = self.choice((), None)
            if residence is None or choice.devices.isdisjoint(residence.limits):
                self.fixed = choice

    def choice(self, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None) -> Choice:
        """The choice for a call with these arguments; futures in them are resolved.

        Raises
        ------
        PlacementError
            If no device of the machine can run it, saying what each lacks.
        """
        usable = tuple(
            v.when is None or bool(v.when(*args, **(kwargs or {}))) for v in self.variants
        )
        refused: Mapping[str, str] = {}
        if self._residence is not None:
            refused = self._residence.refusals(self.task.signature.items(args, kwargs))
        key = usable, frozenset(refused)
        found = self._cache.get(key)
        if found is None:
            found = self._cache[key] = self._choose(usable, refused)
        if not found.devices:
            raise PlacementError(self._complaint(usable, refused))
        return found

    def _choose(self, usable: tuple[bool, ...], refused: Mapping[str, str]) -> Choice:
        candidates = [v for v, fits in zip(self.variants, usable, strict=True) if fits]
        by_device: dict[str, Variant] = {}
        for device, accepted in self.devices.items():
            if device in refused:
                continue
            for kind in accepted:
                variant = next((v for v in candidates if v.kind == kind), None)
                if variant is not None:
                    by_device[device] = variant
                    break
        if self._reproducible and len(by_device) > 1:
            kept = "cpu" if "cpu" in by_device else min(by_device)
            by_device = {kept: by_device[kept]}
        return Choice(by_device)

    def _complaint(self, usable: tuple[bool, ...], refused: Mapping[str, str]) -> str:
        lines = [f"no device can run {self.task.name}:"]
        for device, accepted in self.devices.items():
            unwilling = [
                v.name
                for v, fits in zip(self.variants, usable, strict=True)
                if v.kind in accepted and not fits
            ]
            if device in refused:
                lines.append(f"  {device}: {refused[device]}")
            elif unwilling:
                lines.append(f"  {device}: when= of {', '.join(unwilling)} refuses these arguments")
            else:
                lines.append(f"  {device}: the task has no variant for {' or '.join(accepted)}")
        kinds = sorted({v.kind for v in self.variants})
        lines.append(f"  variants of the task: {', '.join(kinds)}")
        return "\n".join(lines)
