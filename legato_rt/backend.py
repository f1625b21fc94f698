"""The contract between the runtime and a device driver.

A driver is one object that fulfils `Backend`, named in the entry point group
``legato_rt.backends``.  Its `discover` says what is there, `open` takes a device into use.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from legato_rt.errors import SettingError

if TYPE_CHECKING:
    from legato_rt.machine import Device

GROUP = "legato_rt.backends"


class DeviceMemory(Protocol):
    """Memory of a device that is not host memory; every method returns when it is done."""

    def allocate(self, view: Any) -> Any:
        """A device array of the shape and dtype of a host array, dense, with any contents.

        Raises
        ------
        DeviceOutOfMemory
        """

    def on_worker(self, array: Any, worker: int) -> Any:
        """The same array as one worker of the device uses it, for instance on its queue."""

    def upload(self, view: Any, array: Any) -> None:
        """Copy a host array, of any strides, to a device array."""

    def download(self, array: Any, view: Any) -> None:
        """Copy a device array to a host array of any strides."""

    def copy_from_peer(self, source: Any, target: Any) -> None:
        """Copy an array of another device of the same kind."""

    def free(self, array: Any) -> None:
        """Give a device array back."""


@runtime_checkable
class Session(Protocol):
    """A device in use by one runtime.

    Attributes
    ----------
    direct : bool
        Optional: true if `call` would do nothing but call the function, so that it is left out.
    memory : DeviceMemory
        Optional: where arrays must be for `call`, which then gets them from there.
    turn : context manager
        Optional: held while a variant runs, so that one worker computes and another copies.
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
    runs : tuple of str
        Kinds of variants that its devices run. Unless asked for by name, a driver is loaded only
        where a task has such a variant.
    """

    @property
    def kind(self) -> str: ...

    @property
    def runs(self) -> tuple[str, ...]: ...

    def discover(self) -> Sequence[Device]:
        """The devices that can be used now; none is no error."""

    def problems(self) -> Sequence[str]:
        """What keeps devices of this kind from being used, and what to do about each."""

    def open(self, device: Device) -> Session:
        """Take a device into use."""


def to_host(value: Any, kind: type | tuple[type, ...], copy: Callable[[Any], Any]) -> Any:
    """What a variant returned, without arrays of the device; drivers use it in `Session.call`.

    Parameters
    ----------
    value : object
    kind : type
        The driver's own kind of arrays; found also in lists, tuples and dicts.
    copy : callable
        Makes a host array of one.
    """
    if isinstance(value, kind):
        return copy(value)
    if type(value) in (list, tuple):
        return type(value)(to_host(item, kind, copy) for item in value)
    if type(value) is dict:
        return {key: to_host(item, kind, copy) for key, item in value.items()}
    return value


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
