"""``cuda``: NVIDIA GPUs through CuPy.

Variants get CuPy arrays, and run with their worker's stream as the current one: what CuPy does, and
raw kernels launched through it, goes there by itself.  ``numba.cuda`` kernels take CuPy arrays as
they are, and may be launched on the default stream: a worker's stream waits for that and the other
way round.  A device has two workers and a turn: while one's kernels run, the other's arrays are
copied, on a stream of their own, by way of pinned memory.

CuPy is loaded when a GPU was found, never at import.
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from legato_rt.backend import Session, to_host
from legato_rt.devices import cuda_driver
from legato_rt.devices.cuda_errors import translated
from legato_rt.energy import ConstantPower
from legato_rt.errors import DeviceError, SettingError
from legato_rt.machine import Device

# Assumed, not measured: a card of the data centre.
POWER = ConstantPower(active_w=350.0, idle_w=60.0)

STAGE_BYTES = 8 << 20
"""Size of a pinned buffer; two of them take turns, one filled while the other is on its way."""


class _Stage:
    """A pinned buffer, and the event after which it is free again."""

    def __init__(self, cupy: Any) -> None:
        self.pinned = cupy.cuda.alloc_pinned_memory(STAGE_BYTES)
        self.free = cupy.cuda.Event(block=True, disable_timing=True)

    def like(self, view: Any) -> Any:
        """The buffer as a dense array of the shape and dtype of another."""
        return np.frombuffer(self.pinned, view.dtype, view.size).reshape(view.shape)


class _Memory:
    """Arrays on one GPU; one copy at a time, over a stream of its own."""

    def __init__(self, name: str, ordinal: int) -> None:
        import cupy

        self._cupy: Any = cupy
        self._name = name
        self._ordinal = ordinal
        self._stages: list[_Stage] = []
        self._guard = threading.Lock()
        with cupy.cuda.Device(ordinal):
            self._copies = cupy.cuda.Stream(non_blocking=True)

    @contextmanager
    def _entered(self) -> Iterator[None]:
        """The device and the stream for copies made current, and errors translated."""
        device = self._cupy.cuda.Device(self._ordinal)
        with translated(self._name), self._guard, device, self._copies:
            yield

    def allocate(self, view: Any) -> Any:
        if view.dtype.hasobject or not view.dtype.isnative:
            raise DeviceError(
                f"an array of dtype {view.dtype} cannot be used on {self._name}: only "
                "native-endian data without Python objects can"
            )
        with self._entered():
            try:
                return self._cupy.empty(view.shape, view.dtype)
            except (TypeError, ValueError) as error:
                raise DeviceError(
                    f"CuPy has no arrays of dtype {view.dtype} and shape {view.shape}: {error}"
                ) from error

    def on_worker(self, array: Any, worker: int) -> Any:
        return array

    def upload(self, view: Any, array: Any) -> None:
        with self._entered():
            for stage, offset, piece in self._staged(view):
                stage.free.synchronize()
                np.copyto(stage.like(piece), piece)
                target = array.data + offset
                target.copy_from_host_async(stage.pinned.ptr, piece.nbytes, self._copies)
                stage.free.record(self._copies)
            self._copies.synchronize()

    def download(self, array: Any, view: Any) -> None:
        coming: deque[tuple[_Stage, Any]] = deque()
        with self._entered():
            for stage, offset, piece in self._staged(view):
                if len(coming) == len(self._stages):
                    _land(*coming.popleft())
                source = array.data + offset
                source.copy_to_host_async(stage.pinned.ptr, piece.nbytes, self._copies)
                stage.free.record(self._copies)
                coming.append((stage, piece))
            while coming:
                _land(*coming.popleft())

    def copy_from_peer(self, source: Any, target: Any) -> None:
        """Directly where the GPUs reach each other; else the driver goes by way of the host."""
        with self._entered():
            target.data.copy_from_device_async(source.data, target.nbytes, self._copies)
            self._copies.synchronize()

    def free(self, array: Any) -> None:
        """CuPy's pool takes an array back with the last reference to it."""

    def _staged(self, view: Any) -> Iterator[tuple[_Stage, int, Any]]:
        """The pieces of an array, each with the stage that it goes through."""
        if view.size and not self._stages:
            self._stages = [_Stage(self._cupy) for _ in range(2)]
        for stage, (offset, piece) in zip(
            itertools.cycle(self._stages), pieces(view, STAGE_BYTES), strict=False
        ):
            yield stage, offset, piece


def _land(stage: _Stage, piece: Any) -> None:
    """Wait for a piece, and put it where it belongs."""
    stage.free.synchronize()
    np.copyto(piece, stage.like(piece))


def pieces(view: Any, limit: int, offset: int = 0) -> Iterator[tuple[int, Any]]:
    """Cut an array into views that are dense in its dense copy, and no larger than a limit.

    Parameters
    ----------
    view : ndarray
        Of any strides.
    limit : int
        Bytes; at least those of one element.
    offset : int
        Where the view begins in the dense copy, in bytes.

    Yields
    ------
    offset : int
    view : ndarray
    """
    if view.size == 0:
        return
    if view.nbytes <= limit:
        yield offset, view
        return
    row = view.nbytes // len(view)
    count = limit // row
    if not count:
        for i, part in enumerate(view):
            yield from pieces(part, limit, offset + i * row)
        return
    for start in range(0, len(view), count):
        yield offset + start * row, view[start : start + count]


class CudaSession:
    """One GPU in use: a stream for each worker, and one for copies."""

    def __init__(self, name: str, ordinal: int, workers: int) -> None:
        import cupy

        self._cupy: Any = cupy
        self._name = name
        self._ordinal = ordinal
        with translated(name), cupy.cuda.Device(ordinal):
            # Blocking streams: in order with the default stream, that other packages launch on.
            self._streams = [cupy.cuda.Stream() for _ in range(workers)]
            self.memory = _Memory(name, ordinal)
        self.turn = threading.Lock()

    def call(
        self,
        worker: int,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        """Run a variant and wait for what it launched; arrays that it returns come to the host."""
        stream = self._streams[worker]
        with translated(self._name), self._cupy.cuda.Device(self._ordinal), stream:
            try:
                value = function(*args, **kwargs)
            finally:
                stream.synchronize()
                self._cupy.cuda.Stream.null.synchronize()
            return to_host(value, self._cupy.ndarray, self._cupy.ndarray.get)

    def close(self) -> None:
        """Wait for the streams; CuPy frees them with the last reference."""
        with translated(self._name), self._cupy.cuda.Device(self._ordinal):
            for stream in self._streams:
                stream.synchronize()


class CudaBackend:
    """Driver of NVIDIA GPUs."""

    kind = "cuda"
    runs = ("cuda",)

    def discover(self) -> Sequence[Device]:
        """The GPUs that the driver shows, if CuPy can use them."""
        found = _gpus()[0]
        if not found or _package_problem():
            return []
        return [
            Device(
                name := f"cuda:{ordinal}",
                self.kind,
                self.runs,
                workers=2,
                power=POWER,
                detail=f"{gpu.name} (compute capability {gpu.capability})",
                memory=name,
                memory_bytes=gpu.memory_bytes,
                exclusive=True,
            )
            for ordinal, gpu in enumerate(found)
        ]

    def problems(self) -> Sequence[str]:
        """What is missing, and what to install or allow."""
        found, why = _gpus()
        return [text for text in (why, _package_problem(load=bool(found))) if text]

    def open(self, device: Device) -> Session:
        """Streams on the GPU that the device's name has the number of.

        Raises
        ------
        SettingError
            If there is no such GPU.
        """
        _, _, number = device.name.rpartition(":")
        if not number.isdigit() or int(number) >= len(_gpus()[0]):
            raise SettingError(f"there is no GPU {device.name}; see `legato devices`")
        return CudaSession(device.name, int(number), device.workers)


@functools.cache
def _gpus() -> tuple[list[cuda_driver.Gpu], str]:
    return cuda_driver.gpus()


@functools.cache
def _package_problem(load: bool = True) -> str:
    """What is wrong with CuPy, or nothing; it is loaded only where there is a GPU to use it on."""
    if importlib.util.find_spec("cupy") is None:
        return (
            "CuPy is not installed: pip install 'legato_rt[cuda]' (CUDA 12) or 'legato_rt[cuda13]'"
        )
    if not load:
        return ""
    try:
        import cupy

        cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # whatever keeps a package of foreign libraries from loading
        return (
            f"CuPy cannot use the GPU ({error}): the driver must be as new as the CUDA that CuPy "
            "is built for; `nvidia-smi` shows up to which CUDA it goes, and 'legato_rt[cuda]' is "
            "for CUDA 12, 'legato_rt[cuda13]' for 13"
        )
    return ""


backend = CudaBackend()
