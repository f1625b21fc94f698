"""``cpu``: the cores of this machine, one worker each.

Task bodies run in the worker's thread.  Kernels that release the GIL (NumPy, Numba with ``nogil``)
run side by side, so the thread pools of BLAS and OpenMP are held to one thread a worker while a
device is in use: they would start a thread per core for each of the workers otherwise.
"""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import threadpoolctl

from legato_rt.backend import Session
from legato_rt.energy import ConstantPower
from legato_rt.machine import Device

# Assumed, not measured: a server core of about 120 W a dozen, a quarter of it when idle.
CORE = ConstantPower(active_w=10.0, idle_w=2.5)


class _Cores:
    """One runtime's use of the cores; the last to close gives the thread pools back."""

    _lock = threading.Lock()
    _users = 0
    _limits: threadpoolctl.threadpool_limits | None = None
    direct = True

    def __init__(self) -> None:
        with _Cores._lock:
            if not _Cores._users:
                _Cores._limits = threadpoolctl.threadpool_limits(limits=1)
            _Cores._users += 1

    def call(
        self,
        worker: int,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        return function(*args, **kwargs)

    def close(self) -> None:
        with _Cores._lock:
            _Cores._users -= 1
            if not _Cores._users and _Cores._limits is not None:
                _Cores._limits.restore_original_limits()
                _Cores._limits = None


class CpuBackend:
    """Driver of the machine's own cores."""

    kind = "cpu"
    runs = ("cpu",)

    def discover(self) -> Sequence[Device]:
        """One device with a worker for each core that this process may use."""
        detail = platform.processor() or platform.machine()
        return [Device("cpu", "cpu", ("cpu",), usable_cores(), CORE, detail)]

    def problems(self) -> Sequence[str]:
        """None: there is always a CPU."""
        return []

    def open(self, device: Device) -> Session:
        """Hold the thread pools of BLAS and OpenMP to one thread a worker."""
        return _Cores()


def usable_cores() -> int:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


backend = CpuBackend()
