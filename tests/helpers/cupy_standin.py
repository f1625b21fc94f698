"""Stands for CuPy where there is no GPU: its calls as documented, over host memory.

Only what the driver `legato_rt.devices.cuda` uses.  Copies are carried out when their stream is
waited for, so that a copy whose end nobody waits for is noticed.  What real hardware does is left
to the tests marked ``gpu``.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt


class _Here(threading.local):
    device = 0
    streams: tuple[Any, ...] = ()


here = _Here()


class Device:
    def __init__(self, ordinal: int) -> None:
        self.id = ordinal
        self._outer: list[int] = []

    def __enter__(self) -> Device:
        self._outer.append(here.device)
        here.device = self.id
        return self

    def __exit__(self, *error: object) -> None:
        here.device = self._outer.pop()


class Stream:
    """Work that is done in order, when it is waited for."""

    null: Stream

    def __init__(self, non_blocking: bool = False) -> None:
        self.device_id = here.device
        self.work: list[Callable[[], None]] = []

    def __enter__(self) -> Stream:
        assert self.device_id == here.device, "a stream of another device"
        here.streams = (*here.streams, self)
        return self

    def __exit__(self, *error: object) -> None:
        here.streams = here.streams[:-1]

    def synchronize(self) -> None:
        work, self.work = self.work, []
        for step in work:
            step()


Stream.null = Stream()


class Event:
    def __init__(self, block: bool = False, disable_timing: bool = False) -> None:
        self._stream: Stream | None = None

    def record(self, stream: Stream) -> None:
        self._stream = stream

    def synchronize(self) -> None:
        if self._stream is not None:
            self._stream.synchronize()


class Pinned(bytearray):
    """Pinned memory with its address."""

    @property
    def ptr(self) -> int:
        return ctypes.addressof(ctypes.c_char.from_buffer(self))


class MemoryPointer:
    def __init__(self, memory: npt.NDArray[Any], offset: int) -> None:
        self.memory = memory
        self.ptr = memory.ctypes.data + offset
        self._offset = offset

    def __add__(self, offset: int) -> MemoryPointer:
        return MemoryPointer(self.memory, self._offset + offset)

    def copy_from_host_async(self, mem: int, size: int, stream: Stream) -> None:
        stream.work.append(lambda: _move(self.ptr, mem, size))

    def copy_to_host_async(self, mem: int, size: int, stream: Stream) -> None:
        stream.work.append(lambda: _move(mem, self.ptr, size))

    def copy_from_device_async(self, src: MemoryPointer, size: int, stream: Stream) -> None:
        stream.work.append(lambda: _move(self.ptr, src.ptr, size))


def _move(target: int, source: int, size: int) -> None:
    ctypes.memmove(target, source, size)


class ndarray:
    """A device array; `host` is what a kernel works on."""

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.host = np.full(shape, 0, dtype)
        self.shape, self.dtype, self.nbytes = self.host.shape, self.host.dtype, self.host.nbytes
        self.size = self.host.size
        self.data = MemoryPointer(self.host, 0)
        self.device = Device(here.device)

    def get(self) -> Any:
        return self.host.copy()


def empty(shape: tuple[int, ...], dtype: Any) -> ndarray:
    if np.dtype(dtype).kind not in "?biufcV":
        raise ValueError(f"Unsupported dtype {dtype}")
    return ndarray(shape, dtype)


def module() -> types.ModuleType:
    """What ``import cupy`` gives."""
    made: Any = types.ModuleType("cupy")
    made.empty, made.ndarray = empty, ndarray
    made.cuda = types.SimpleNamespace(
        Device=Device,
        Stream=Stream,
        Event=Event,
        alloc_pinned_memory=Pinned,
        runtime=types.SimpleNamespace(getDeviceCount=lambda: 2),
    )
    return made  # type: ignore[no-any-return]


@contextlib.contextmanager
def installed(patch: Any) -> Iterator[None]:
    """Have the driver find two GPUs and this module."""
    from legato_rt.devices import cuda, cuda_driver

    gpus = [cuda_driver.Gpu("a stand-in", 1 << 30, "9.0")] * 2
    with patch.context() as patched:
        patched.setitem(__import__("sys").modules, "cupy", module())
        patched.setattr(cuda, "_gpus", lambda: (gpus, ""))
        patched.setattr(cuda, "_package_problem", lambda load=True: "")
        yield
