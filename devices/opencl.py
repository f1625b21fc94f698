"""``opencl`` and ``fpga``: any OpenCL device; an accelerator is an FPGA, or stands for one.

Variants get `pyopencl.array.Array` objects on their worker's queue.  A device has two workers and
a turn: while one's kernels run, the other's arrays are copied.  PyOpenCL is loaded when a device is
looked for, never at import.  A device's context is one for the whole process, so that what a
variant compiles serves every runtime.

``LEGATO_RT_OPENCL_PARTS=2`` makes two devices of each one that can be parted, such as PoCL's.
``LEGATO_RT_FPGA=name`` declares the devices whose name, or whose platform's, holds that text to be
FPGAs.  What only emulates one is labelled so, and used when it is asked for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from legato_rt.backend import Session, to_host
from legato_rt.devices.opencl_discovery import devices, is_checker, is_emulated, parent, problems
from legato_rt.devices.opencl_errors import translated
from legato_rt.devices.opencl_program import kernel, program, slug
from legato_rt.energy import ConstantPower
from legato_rt.errors import DeviceError, DeviceOutOfMemory, SettingError
from legato_rt.machine import Device

__all__ = [
    "OpenClBackend",
    "OpenClSession",
    "backend",
    "fpga_backend",
    "kernel",
    "program",
    "slug",
]

# Assumed, not measured: a few cores that run kernels, or an accelerator card of the middle class.
POWER = {"cpu": ConstantPower(20.0, 5.0), "other": ConstantPower(150.0, 25.0)}


class _Memory:
    """Buffers of one device; copies go over a queue of their own."""

    def __init__(self, device: Any, queues: Sequence[Any]) -> None:
        import pyopencl
        import pyopencl.array

        self._cl: Any = pyopencl
        self._array: Any = pyopencl.array.Array
        self._device = device
        self._queues = queues
        self._copies = _shared(device).copies
        self._lazy = not device.type & pyopencl.device_type.CPU

    def allocate(self, view: Any) -> Any:
        if view.dtype.hasobject or not view.dtype.isnative:
            raise DeviceError(
                f"an array of dtype {view.dtype} cannot be used on an OpenCL device: "
                "only native-endian data without Python objects can"
            )
        allowed = self._device.max_mem_alloc_size
        if view.nbytes > allowed:
            raise DeviceOutOfMemory(
                f"{self._device.name.strip()} has no arrays of {view.nbytes} bytes, {allowed} at "
                "most: split the array with lrt.tiles"
            )
        with translated(self._device):
            array = self._array(self._queues[0], view.shape, view.dtype)
            if self._lazy and view.size:  # else a full device would be noticed by the first copy
                undefined = self._cl.mem_migration_flags.CONTENT_UNDEFINED
                self._cl.enqueue_migrate_mem_objects(
                    self._copies, [array.base_data], flags=undefined
                ).wait()
        return array

    def on_worker(self, array: Any, worker: int) -> Any:
        return array.with_queue(self._queues[worker])

    def upload(self, view: Any, array: Any) -> None:
        if not view.size:
            return
        with translated(self._device):
            if view.flags.c_contiguous:
                self._cl.enqueue_copy(self._copies, array.base_data, view, is_blocking=True)
                return
            flags = self._cl.map_flags.WRITE_INVALIDATE_REGION
            with _mapped(self._copies, array, flags) as host:
                np.copyto(host, view)

    def download(self, array: Any, view: Any) -> None:
        if not view.size:
            return
        with translated(self._device):
            if view.flags.c_contiguous:
                self._cl.enqueue_copy(self._copies, view, array.base_data, is_blocking=True)
                return
            with _mapped(self._copies, array, self._cl.map_flags.READ) as host:
                np.copyto(view, host)

    def copy_from_peer(self, source: Any, target: Any) -> None:
        """From the source's memory as the host sees it: two contexts share no buffer."""
        if source.size:
            origin = source.queue.device
            flags = self._cl.map_flags.READ
            with translated(origin), _mapped(_shared(origin).copies, source, flags) as host:
                self.upload(host, target)

    def free(self, array: Any) -> None:
        if array.base_data is not None:
            array.base_data.release()


@contextmanager
def _mapped(queue: Any, array: Any, flags: Any) -> Iterator[Any]:
    """A device array as the host sees it, so that other strides need no second copy."""
    import pyopencl

    host, _ = pyopencl.enqueue_map_buffer(
        queue, array.base_data, flags, array.offset, array.shape, array.dtype, is_blocking=True
    )
    try:
        yield host
    finally:
        host.base.release(queue).wait()


class OpenClSession:
    """One OpenCL device in use: a queue for each worker, and one for copies."""

    def __init__(self, device: Any, workers: int) -> None:
        from pyopencl.array import Array

        self._device = device
        self._array: Any = Array
        with translated(device):
            self._shared = _shared(device)
            self.queues = [self._shared.queue() for _ in range(workers)]
            self.memory = _Memory(device, self.queues)
        self.turn = threading.Lock()

    def call(
        self,
        worker: int,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        """Run a variant and wait for its queue; arrays that it returns come to the host."""
        with translated(self._device):
            try:
                value = function(*args, **kwargs)
            finally:
                self.queues[worker].finish()
            return to_host(value, self._array, self._array.get)

    def close(self) -> None:
        """Wait for the queues, and leave them to the next session: programs hang on them."""
        queues, self.queues = self.queues, []
        with translated(self._device):
            for queue in queues:
                queue.finish()
        self._shared.idle += queues


class _Shared:
    """What all sessions of the process share of a device.

    Attributes
    ----------
    copies : pyopencl.CommandQueue
        For copies to and from the device.
    idle : list of pyopencl.CommandQueue
        Queues for workers that no session uses.
    """

    def __init__(self, device: Any) -> None:
        import pyopencl

        self._cl: Any = pyopencl
        self._device = device
        self._context = pyopencl.Context([device])
        # PoCL gives a queue to the whole device if it is not told which part of it.
        self.copies = pyopencl.CommandQueue(self._context, device)
        self.idle: list[Any] = []

    def queue(self) -> Any:
        """A queue for one worker."""
        try:
            return self.idle.pop()
        except IndexError:
            profiling = self._cl.command_queue_properties.PROFILING_ENABLE
            return self._cl.CommandQueue(self._context, self._device, properties=profiling)


_guard = threading.Lock()
_in_use: dict[Any, _Shared] = {}


def _shared(device: Any) -> _Shared:
    with _guard:
        if device not in _in_use:
            _in_use[device] = _Shared(device)
        return _in_use[device]


class OpenClBackend:
    """Driver of OpenCL devices of one kind.

    Parameters
    ----------
    kind : {"opencl", "fpga"}
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.runs = ("opencl",) if kind == "opencl" else ("fpga", "opencl")

    def discover(self) -> Sequence[Device]:
        """All devices of the installed OpenCL platforms that are of this kind."""
        return [_described(name, self, device) for name, device in devices(self.kind).items()]

    def problems(self) -> Sequence[str]:
        """What is missing, and what to install or allow."""
        return problems(self.kind)

    def open(self, device: Device) -> Session:
        """Queues on the device; a machine file may declare one of another kind to be an FPGA.

        Raises
        ------
        SettingError
            If there is no device of that name.
        """
        found = {**devices("opencl"), **devices("fpga")}.get(device.name)
        if found is None:
            raise SettingError(f"there is no OpenCL device {device.name}; see `legato devices`")
        return OpenClSession(found, device.workers)


def _described(name: str, backend: OpenClBackend, device: Any) -> Device:
    import pyopencl

    emulated = backend.kind == "fpga" and is_emulated(device)
    notes = [device.platform.name.strip()]
    whole = parent(device)
    if whole is not None:
        notes.append(f"{device.max_compute_units} of {whole.max_compute_units} units")
    if emulated:
        notes.append("emulated")
    on_cpu = bool(device.type & pyopencl.device_type.CPU)
    return Device(
        name,
        backend.kind,
        backend.runs,
        workers=2,
        power=POWER["cpu" if on_cpu else "other"],
        detail=f"{device.name.strip()} ({', '.join(notes)})",
        simulated=emulated or is_checker(device),
        memory=name,
        memory_bytes=device.global_mem_size,
        shares="cpu" if on_cpu else "",
        exclusive=True,
    )


backend = OpenClBackend("opencl")
fpga_backend = OpenClBackend("fpga")
