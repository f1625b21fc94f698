"""Which variants of a task a machine can run: worked out once per task, not once per node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from legato_rt.errors import PlacementError
from legato_rt.task import Task, Variant


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

    Attributes
    ----------
    source : tuple of Variant
        The task's variants that it was made from.
    fixed : Choice or None
        The choice, if it does not depend on the arguments.
    """

    __slots__ = ("_cache", "_reproducible", "devices", "fixed", "source", "task", "variants")

    def __init__(
        self, task: Task[..., Any], devices: Mapping[str, Sequence[str]], reproducible: bool
    ) -> None:
        self.task = task
        self.devices = devices
        self._reproducible = reproducible
        self._cache: dict[tuple[bool, ...], Choice] = {}
        # Declared last comes first; the reference is what is left when nothing else fits.
        self.source = task.variants
        self.variants: tuple[Variant, ...] = task.variants[::-1]
        self.fixed: Choice | None = None
        if all(v.when is None for v in self.variants):
            self.fixed = self.choice((), None)

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
        found = self._cache.get(usable)
        if found is None:
            found = self._cache[usable] = self._choose(usable)
        if not found.devices:
            raise PlacementError(self._complaint(usable))
        return found

    def _choose(self, usable: tuple[bool, ...]) -> Choice:
        candidates = [v for v, fits in zip(self.variants, usable, strict=True) if fits]
        by_device: dict[str, Variant] = {}
        for device, accepted in self.devices.items():
            for kind in accepted:
                variant = next((v for v in candidates if v.kind == kind), None)
                if variant is not None:
                    by_device[device] = variant
                    break
        if self._reproducible and len(by_device) > 1:
            kept = "cpu" if "cpu" in by_device else min(by_device)
            by_device = {kept: by_device[kept]}
        return Choice(by_device)

    def _complaint(self, usable: tuple[bool, ...]) -> str:
        lines = [f"no device can run {self.task.name}:"]
        for device, accepted in self.devices.items():
            refused = [
                v.name
                for v, fits in zip(self.variants, usable, strict=True)
                if v.kind in accepted and not fits
            ]
            if refused:
                lines.append(f"  {device}: when= of {', '.join(refused)} refuses these arguments")
            else:
                lines.append(f"  {device}: the task has no variant for {' or '.join(accepted)}")
        kinds = sorted({v.kind for v in self.variants})
        lines.append(f"  variants of the task: {', '.join(kinds)}")
        return "\n".join(lines)
