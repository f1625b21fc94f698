"""OpenCL's error codes as errors of legato_rt, with what one needs to know to mend the cause."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from legato_rt.devices.compiler_log import quoted
from legato_rt.errors import BuildError, DeviceError, DeviceLost, DeviceOutOfMemory

# MEM_OBJECT_ALLOCATION_FAILURE, OUT_OF_RESOURCES, OUT_OF_HOST_MEMORY, INVALID_BUFFER_SIZE
OUT_OF_MEMORY = (-4, -5, -6, -61)
# DEVICE_NOT_AVAILABLE, INVALID_CONTEXT, INVALID_COMMAND_QUEUE; NVIDIA's for a bad address
LOST = (-2, -34, -36, -9999)
# COMPILER_NOT_AVAILABLE, BUILD, COMPILE and LINK_PROGRAM_FAILURE, INVALID_BINARY
BUILD = (-3, -11, -15, -17, -42)
# INVALID_WORK_DIMENSION, WORK_GROUP_SIZE, WORK_ITEM_SIZE, GLOBAL_OFFSET, GLOBAL_WORK_SIZE
WORK_SIZE = (-53, -54, -55, -56, -63)


@contextmanager
def translated(device: Any) -> Iterator[None]:
    """Raise our errors for OpenCL's.

    Parameters
    ----------
    device : pyopencl.Device
        Named in the messages.

    Raises
    ------
    DeviceOutOfMemory, BuildError, DeviceLost, DeviceError
    """
    import pyopencl

    try:
        yield
    except pyopencl.Error as error:
        raise translate(error, device) from error


def translate(error: Any, device: Any) -> DeviceError:
    """The error of legato_rt for one of PyOpenCL's."""
    import pyopencl

    code = getattr(error, "code", None)
    message = f"{device.name.strip()}: {error}"
    if code in OUT_OF_MEMORY or isinstance(error, pyopencl.MemoryError):
        allowed = f"{device.max_mem_alloc_size} bytes at once, {device.global_mem_size} in all"
        return DeviceOutOfMemory(f"{message} (allowed: {allowed})")
    if code in BUILD:
        return BuildError(message + quoted(str(error), _source(error.__traceback__)))
    if code in LOST:
        return DeviceLost(message)
    if code in WORK_SIZE:
        return DeviceError(message + _sizes(error.__traceback__, device))
    return DeviceError(message)


def _source(trace: TracebackType | None) -> str | None:
    """The text that was being built: PyOpenCL's errors do not hold it, its frames do."""
    import pyopencl

    for frame in _locals(trace):
        program = frame.get("self")
        if isinstance(program, pyopencl.Program):
            return getattr(program, "_source", None)
    return None


def _sizes(trace: TracebackType | None, device: Any) -> str:
    """What sizes of work were asked for and what is allowed."""
    import pyopencl

    group, kernel = device.max_work_group_size, None
    asked = ""
    for frame in _locals(trace):
        if isinstance(frame.get("self"), pyopencl.Kernel) and "global_size" in frame:
            kernel = frame["self"]
            asked = f"asked: {frame['global_size']} items in groups of {frame['local_size']}; "
            info = pyopencl.kernel_work_group_info.WORK_GROUP_SIZE
            group = min(group, kernel.get_work_group_info(info, device))
    name = f"{kernel.function_name} " if kernel is not None else ""
    return (
        f" ({name}{asked}allowed: {group} items a group, at most "
        f"{tuple(device.max_work_item_sizes)}, groups that divide the items)"
    )


def _locals(trace: TracebackType | None) -> Iterator[dict[str, Any]]:
    while trace is not None:
        yield trace.tb_frame.f_locals
        trace = trace.tb_next
