"""``disk``: a device whose memory is a disk, for data that are larger than host memory.

Variants of kind ``disk`` get arrays that are files mapped into memory (`numpy.memmap`): the system
reads the pages that a variant touches, and writes them back.  The files lie in the folder that
``LEGATO_DISK`` names, and have no name of their own, so that nothing is left of them whatever
happens.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from legato_rt.backend import to_host
from legato_rt.energy import ConstantPower
from legato_rt.errors import DeviceError, DeviceOutOfMemory
from legato_rt.machine import Device

FOLDER = os.environ.get("LEGATO_DISK", tempfile.gettempdir())


class Memory:
    """Where the arrays are, and how they get there."""

    def allocate(self, view: Any) -> Any:
        if view.dtype.hasobject or not view.dtype.isnative:
            raise DeviceError(f"an array of dtype {view.dtype} cannot be used on a disk")
        if not view.nbytes:
            return np.empty(view.shape, view.dtype)
        with tempfile.TemporaryFile(dir=FOLDER) as file:
            try:
                os.posix_fallocate(file.fileno(), 0, view.nbytes)
            except OSError as error:  # mostly ENOSPC
                raise DeviceOutOfMemory(f"{FOLDER}: {view.nbytes} bytes: {error}") from error
            return np.memmap(file, view.dtype, "r+", shape=view.shape)

    def on_worker(self, array: Any, worker: int) -> Any:
        return array

    def upload(self, view: Any, array: Any) -> None:
        np.copyto(array, view)

    def download(self, array: Any, view: Any) -> None:
        np.copyto(view, array)

    def copy_from_peer(self, source: Any, target: Any) -> None:
        np.copyto(target, source)

    def free(self, array: Any) -> None:
        """The file goes with the last reference to its array."""


class Session:
    """The device in use by one runtime: a memory, and the turn to compute."""

    def __init__(self) -> None:
        self.memory = Memory()
        self.turn = threading.Lock()

    def call(
        self,
        worker: int,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        return to_host(function(*args, **kwargs), np.memmap, np.array)

    def close(self) -> None:
        """Nothing is held."""


class DiskBackend:
    """The driver, which the entry point in ``pyproject.toml`` names."""

    kind = "disk"
    runs = ("disk",)

    def discover(self) -> Sequence[Device]:
        """One device, with a worker to compute and one to copy meanwhile."""
        if self.problems():
            return []
        power = ConstantPower(active_w=5.0, idle_w=1.0)  # assumed: what a disk draws
        size = shutil.disk_usage(FOLDER).total
        return [
            Device("disk", self.kind, self.runs, 2, power, FOLDER, memory="disk", memory_bytes=size)
        ]

    def problems(self) -> Sequence[str]:
        """What keeps the folder from being used."""
        if os.path.isdir(FOLDER) and os.access(FOLDER, os.W_OK):
            return []
        return [f"{FOLDER} is no folder that can be written to: set LEGATO_DISK to one that is"]

    def open(self, device: Device) -> Session:
        """Nothing to prepare."""
        return Session()


backend = DiskBackend()
