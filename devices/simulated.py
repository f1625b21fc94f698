"""``simulated``: a device that stands for an accelerator where there is none.

It runs CPU variants (or ``simulated`` ones where a task has them) in its worker's thread, so that
placement, several kinds of devices and every policy can be tried on any machine.  Reports label it
as simulated; it is used only when asked for by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from legato_rt.backend import Session
from legato_rt.energy import ConstantPower
from legato_rt.machine import Device


class _Session:
    def call(
        self,
        worker: int,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        return function(*args, **kwargs)

    def close(self) -> None:
        """Nothing is held."""


class SimulatedBackend:
    """Driver of one accelerator that is not there."""

    kind = "simulated"
    runs = ("simulated", "cpu")

    def discover(self) -> Sequence[Device]:
        """The one device, with one worker."""
        power = ConstantPower(active_w=30.0, idle_w=5.0)
        detail = "stands for an accelerator; runs on the CPU"
        return [Device("simulated", self.kind, self.runs, 1, power, detail, simulated=True)]

    def problems(self) -> Sequence[str]:
        """None: it needs nothing."""
        return []

    def open(self, device: Device) -> Session:
        """Nothing to prepare."""
        return _Session()


backend = SimulatedBackend()
