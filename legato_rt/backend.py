"""The contract between the runtime and a device driver.

A driver is one object that fulfils `Backend`, named in the entry point group
``legato_rt.backends``.  `discover` says what is there, `open` takes a device into use.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from typing import Any, Protocol, runtime_checkable

from legato_rt.errors import SettingError
from legato_rt.machine import Device, Machine

GROUP = "legato_rt.backends"


@runtime_checkable
class Session(Protocol):
    """A device in use by one runtime.

    Attributes
    ----------
    direct : bool
        Optional: true if `call` would do nothing but call the function, so that it is left out.
    """

    def call(
        self,
        worker: int,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        """Run a variant on one of the device's workers and return its value when it is done.

        Called in the worker's own thread; ``worker`` counts from 0 within the device.
        """

    def close(self) -> None:
        """Give the device back; no call is running."""


@runtime_checkable
class Backend(Protocol):
    """A device driver.

    Attributes
    ----------
    kind : str
        The kind of its devices.
    """

    kind: str

    def discover(self) -> Sequence[Device]:
        """The devices that can be used now; none is no error."""

    def problems(self) -> Sequence[str]:
        """What keeps devices of this kind from being used, and what to do about each."""

    def open(self, device: Device) -> Session:
        """Take a device into use."""


@functools.cache
def backends() -> dict[str, Backend]:
    """All installed drivers by kind.

    Raises
    ------
    SettingError
        If an installed driver cannot be loaded or does not fulfil the contract.
    """
    found: dict[str, Backend] = {}
    for entry in metadata.entry_points(group=GROUP):
        try:
            backend = entry.load()
        except Exception as error:
            raise SettingError(
                f"the device driver {entry.value} cannot be loaded: {error}"
            ) from error
        if not isinstance(backend, Backend):
            raise SettingError(f"the device driver {entry.value} does not fulfil Backend")
        found[backend.kind] = backend
    return found


def discover() -> Machine:
    """The machine this process runs on, with the devices of all installed drivers."""
    devices = [device for backend in backends().values() for device in backend.discover()]
    return Machine(tuple(sorted(devices, key=lambda d: (d.simulated, d.kind != "cpu", d.name))))
