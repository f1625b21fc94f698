"""``opencl`` and ``fpga``: any OpenCL device; an accelerator is an FPGA, or stands for one.

Variants get `pyopencl.array.Array` objects on their worker's queue.  A device has two workers and a
turn: while one's kernels run, the other's arrays are copied.  PyOpenCL is loaded when a device is
looked for, never at import.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from legato_rt.backend import Session
from legato_rt.energy import ConstantPower
from legato_rt.errors import BuildError, DeviceError, DeviceLost, DeviceOutOfMemory, SettingError
from legato_rt.machine import Device

# Assumed, not measured: a few cores that run kernels, or an accelerator card of the middle class.
POWER = {"cpu": ConstantPower(20.0, 5.0), "other": ConstantPower(150.0, 25.0)}

OUT_OF_MEMORY = (-4, -5, -6)  # MEM_OBJECT_ALLOCATION_FAILURE, OUT_OF_RESOURCES, OUT_OF_HOST_MEMORY
LOST = (-2, -36, -34)  # DEVICE_NOT_AVAILABLE, INVALID_COMMAND_QUEUE, INVALID_CONTEXT
BUILD = (-11, -15, -17)  # BUILD_PROGRAM_FAILURE, COMPILE_PROGRAM_FAILURE, LINK_PROGRAM_FAILURE
WORK_SIZE = (-53, -54, -55, -56, -63)  # dimension, group, item, offset, global size


class _Memory:
    """Buffers of one device; copies go over a queue of their own."""

    def __init__(self, context: Any, queues: Sequence[Any], copies: Any) -> None:
        import pyopencl
        import pyopencl.array

        self._cl = pyopencl
        self._array = pyopencl.array
        self._context = context
        self._queues = queues
        self._copies = copies

    def allocate(self, view: Any) -> Any:
        if view.dtype.hasobject or not view.dtype.isnative:
            raise DeviceError(
                f"an array of dtype {view.dtype} cannot be used on an OpenCL device: "
                "only native-endian data without Python objects can"
            )
        with _translated(self._copies.device):
            return self._array.Array(self._queues[0], view.shape, view.dtype)

    def on_worker(self, array: Any, worker: int) -> Any:
        return array.with_queue(self._queues[worker])

    def upload(self, view: Any, array: Any) -> None:
        if view.size:
            with _translated(self._copies.device):
                self._cl.enqueue_copy(
                    self._copies, array.base_data, np.ascontiguousarray(view), is_blocking=True
                )

    def download(self, array: Any, view: Any) -> None:
        if not view.size:
            return
        dense = view if view.flags.c_contiguous else np.empty(view.shape, view.dtype)
        with _translated(self._copies.device):
            self._cl.enqueue_copy(self._copies, dense, array.base_data, is_blocking=True)
        if dense is not view:
            np.copyto(view, dense)

    def copy_from_peer(self, source: Any, target: Any) -> None:
        host = np.empty(source.shape, source.dtype)
        if host.size:
            with _translated(self._copies.device):
                self._cl.enqueue_copy(source.queue, host, source.base_data, is_blocking=True)
                self._cl.enqueue_copy(self._copies, target.base_data, host, is_blocking=True)

    def free(self, array: Any) -> None:
        if array is not None and array.base_data is not None:
            array.base_data.release()


class OpenClSession:
    """One OpenCL device in use: a context, a queue a worker, and one for copies."""

    def __init__(self, device: Any, workers: int) -> None:
        import pyopencl

        self._cl_array = __import__("pyopencl.array").array.Array
        with _translated(device):
            context = pyopencl.Context([device])
            profiling = pyopencl.command_queue_properties.PROFILING_ENABLE
            self.queues = [
                pyopencl.CommandQueue(context, properties=profiling) for _ in range(workers)
            ]
            copies = pyopencl.CommandQueue(context)
        self._device = device
        self.memory = _Memory(context, self.queues, copies)
        self.turn = threading.Lock()

    def call(
        self,
        worker: int,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        """Run a variant and wait for its queue; an array that it returns comes to the host."""
        with _translated(self._device):
            value = function(*args, **kwargs)
            self.queues[worker].finish()
            return value.get() if isinstance(value, self._cl_array) else value

    def close(self) -> None:
        """Wait for the queues; PyOpenCL frees them with the last reference."""
        for queue in self.queues:
            queue.finish()


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
        return [
            Device(
                name,
                self.kind,
                self.runs,
                2,
                _power(device),
                _detail(device),
                simulated="oclgrind" in device.platform.name.lower(),
            )
            for name, device in _devices(self.kind).items()
        ]

    def problems(self) -> Sequence[str]:
        """What is missing, and what to install or allow."""
        try:
            import pyopencl
        except ImportError as error:
            return [
                f"PyOpenCL cannot be imported ({error}): pip install 'legato_rt[opencl]' brings "
                "it, with PoCL for the CPU"
            ]
        try:
            platforms = pyopencl.get_platforms()
        except pyopencl.Error as error:
            platforms, reason = [], str(error)
        else:
            reason = "the loader found none"
        if not platforms:
            return [
                f"no OpenCL platform ({reason}): pip install pocl-binary-distribution, or install "
                "the vendor's driver; OCL_ICD_VENDORS must name a folder with its .icd file"
            ]
        if not _devices(self.kind):
            return [f"no {self.kind} device on {', '.join(p.name for p in platforms)}"]
        return []

    def open(self, device: Device) -> Session:
        """A context and queues on the device."""
        return OpenClSession(_devices(self.kind)[device.name], device.workers)


@functools.cache
def _devices(kind: str) -> dict[str, Any]:
    """PyOpenCL devices by name; those that emulate an FPGA, or are one, are of kind ``fpga``."""
    try:
        import pyopencl

        platforms = pyopencl.get_platforms()
    except Exception:  # no loader, no platform, a broken driver: `problems` says which
        return {}
    found = []
    for platform in platforms:
        for device in platform.get_devices():
            accelerator = device.type == pyopencl.device_type.ACCELERATOR
            if (kind == "fpga") == accelerator:
                found += _parts(device)
    return {f"{kind}:{i}": device for i, device in enumerate(found)}


def _parts(device: Any) -> list[Any]:
    """The device, or as many equal parts of it as ``LEGATO_RT_OPENCL_PARTS`` says."""
    import pyopencl

    text = os.environ.get("LEGATO_RT_OPENCL_PARTS", "1")
    if not text.isdigit() or not int(text):
        raise SettingError(f"LEGATO_RT_OPENCL_PARTS={text!r}: a whole number from 1 is needed")
    units = device.max_compute_units // int(text)
    if int(text) == 1 or not units:
        return [device]
    equally = pyopencl.device_partition_property.EQUALLY
    return list(device.create_sub_devices([equally, units]))


def _power(device: Any) -> ConstantPower:
    import pyopencl

    return POWER["cpu" if device.type & pyopencl.device_type.CPU else "other"]


def _detail(device: Any) -> str:
    emulated = ", emulated" if "emulation" in device.name.lower() else ""
    return f"{device.name.strip()} ({device.platform.name.strip()}{emulated})"


@contextmanager
def _translated(device: Any) -> Iterator[None]:
    """Raise our errors for OpenCL's codes."""
    import pyopencl

    try:
        yield
    except pyopencl.Error as error:
        code = getattr(error, "code", None)
        message = f"{device.name.strip()}: {error}"
        if code in OUT_OF_MEMORY or isinstance(error, pyopencl.MemoryError):
            raise DeviceOutOfMemory(message) from error
        if code in BUILD:
            raise BuildError(message) from error
        if code in LOST:
            raise DeviceLost(message) from error
        if code in WORK_SIZE:
            limits = f"{device.max_work_group_size} items a group, {device.max_work_item_sizes}"
            message += f" (allowed: {limits})"
        raise DeviceError(message) from error


backend = OpenClBackend("opencl")
fpga_backend = OpenClBackend("fpga")
