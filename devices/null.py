"""``null``: a device with a memory of its own that needs no hardware.

Its memory is host memory, its variants (kind ``null``) are plain Python over NumPy arrays.  It
stands for any accelerator where only the movement of data matters: every driver's contract is tried
on it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from legato_rt.backend import Session, to_host
from legato_rt.energy import ConstantPower
from legato_rt.machine import Device


class _Memory:
    """Dense NumPy arrays, apart from the program's own."""

    def allocate(self, view: Any) -> Any:
        return np.empty(view.shape, view.dtype)

    def on_worker(self, array: Any, worker: int) -> Any:
        return array

    def upload(self, view: Any, array: Any) -> None:
        np.copyto(array, view)

    def download(self, array: Any, view: Any) -> None:
        np.copyto(view, array)

    def copy_from_peer(self, source: Any, target: Any) -> None:
        np.copyto(target, source)

    def free(self, array: Any) -> None:
        """Python's own memory needs no call."""


class _Session:
    def __init__(self) -> None:
        self.memory = _Memory()
        self.turn = threading.Lock()

    def call(
        self,
        worker: int,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        return to_host(function(*args, **kwargs), np.ndarray, np.array)

    def close(self) -> None:
        """Nothing is held."""


class NullBackend:
    """Driver of one device that is not there."""

    kind = "null"
    runs = ("null",)

    def discover(self) -> Sequence[Device]:
        """The one device; two workers, so that one copies while the other computes."""
        power = ConstantPower(active_w=0.0, idle_w=0.0)
        detail = "host memory that stands for a device's"
        return [Device("null", self.kind, self.runs, 2, power, detail, simulated=True)]

    def problems(self) -> Sequence[str]:
        """None: it needs nothing."""
        return []

    def open(self, device: Device) -> Session:
        """A memory and a turn."""
        return _Session()


backend = NullBackend()
