"""Builds device kernels where the arrays live, and puts them into the queue of that device.

The same call serves OpenCL, for arrays of `pyopencl.array` on a worker's queue, and CUDA, for CuPy
arrays on the current stream.  Nothing waits: a kernel starts when those before it are done.  Queues
must be in order.
"""

from __future__ import annotations

import functools
import hashlib
import threading
import weakref
from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from legato_rt.kernels.device_source import Source

CPU_LANES = 1
"""Items that share a row or a segment where an item is a loop on a processor core."""

GRID_HEIGHT = 65535
"""Groups that CUDA allows in any dimension but the first."""


@dataclass(frozen=True)
class Traits:
    """What a kernel's shape depends on.

    Attributes
    ----------
    kind : str
        ``opencl`` or ``cuda``.
    scalar : bool
        Whether an item is a loop on a processor core, and not a lane of a GPU.
    vector_bytes : int
        Width of the vector registers that one item can use.
    """

    kind: str
    scalar: bool
    vector_bytes: int


class Program(Protocol):
    """Kernels built for one device and precision, bound to a queue."""

    traits: Traits
    lanes: int

    def launch(self, kernel: str, items: Sequence[int], group: Sequence[int], *args: Any) -> None:
        """Enqueue a kernel for at least so many items, in whole groups; none if there are none.

        Parameters
        ----------
        kernel : str
        items, group : sequence of int
            One or two numbers each.
        *args
            Arrays of the device; Python integers go as 64 bit, Python floats in the precision of
            the program.
        """

    def scratch(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Any:
        """Return a new array on the device, with anything in it."""


def build(source: Source, like: Any, **constants: int | str) -> Program:
    """Return a source's kernels for the device and the precision of an array.

    They are compiled once per context, precision and constants, also when threads ask at once.
    """
    if hasattr(like, "queue"):
        return _OpenCLProgram(source, like, constants)
    return _CudaProgram(source, like, constants)


def traits(like: Any) -> Traits:
    """Return the traits of the device that holds an array."""
    if hasattr(like, "queue"):
        return _opencl_traits(like.queue.device)
    return Traits("cuda", scalar=False, vector_bytes=4)


def _lanes(source: Source, scalar: bool) -> int:
    return CPU_LANES if scalar else source.lanes or 1


def _groups(items: Sequence[int], group: Sequence[int]) -> tuple[int, ...]:
    return tuple(-(-n // size) for n, size in zip(items, group, strict=True))


def _scalar(arg: Any, real: Any) -> Any:
    """Return a number as the kernels declare it, and anything else as it is."""
    if isinstance(arg, int | np.integer):
        return np.int64(arg)
    return real(arg) if isinstance(arg, float | np.floating) else arg


# --- OpenCL ---------------------------------------------------------------------------------------


@functools.cache
def _opencl_traits(device: Any) -> Traits:
    import pyopencl as cl

    # An FPGA's compiler, too, makes most of the loop of one item: a pipeline.
    scalar = bool(device.type & (cl.device_type.CPU | cl.device_type.ACCELERATOR))
    return Traits("opencl", scalar, 4 * max(4, min(16, device.native_vector_width_float)))


class _Built:
    """A compiled program and its kernel objects that no thread is using.

    To set a kernel object's arguments and enqueue it are two steps, so no two threads may share
    one; and to make one takes longer than to launch it.
    """

    def __init__(self, program: Any) -> None:
        self.program = program
        self._idle: dict[str, deque[Any]] = {}

    def launch(self, kernel: str, queue: Any, items: Any, group: Any, args: Any) -> None:
        idle = self._idle.setdefault(kernel, deque())
        try:
            found = idle.pop()
        except IndexError:
            import pyopencl as cl

            found = cl.Kernel(self.program, kernel)
        found(queue, items, group, *args)
        idle.append(found)


_building = threading.Lock()
_shared: weakref.WeakValueDictionary[Hashable, _Built] = weakref.WeakValueDictionary()


def _opencl_built(source: Source, queue: Any, options: tuple[str, ...]) -> _Built:
    """Return a program from those that the queue keeps; queues of one context share them.

    A program keeps its context alive, so it must go with the last queue that needs it.
    """
    kept: dict[Hashable, _Built] = queue.__dict__.setdefault("legato_rt_programs", {})
    found = kept.get((source.name, options))
    if found is None:
        with _building:
            # While a program lives, no other context can have the address of its own.
            key = queue.context.int_ptr, queue.device.int_ptr, source.name, options
            found = _shared.get(key)
            if found is None:
                found = _Built(_compile(source, queue.context, queue.device, options))
                _shared[key] = found
            kept[source.name, options] = found
    return found


class _OpenCLProgram:
    def __init__(self, source: Source, like: Any, constants: dict[str, int | str]) -> None:
        self._queue = like.queue
        self._real = like.dtype.type
        self.traits = _opencl_traits(self._queue.device)
        self.lanes = _lanes(source, self.traits.scalar)
        if source.lanes is not None:
            constants = {"LANES": self.lanes, **constants}
        options = source.options("opencl", like.dtype, **constants)
        self._built = _opencl_built(source, self._queue, options)

    def launch(self, kernel: str, items: Sequence[int], group: Sequence[int], *args: Any) -> None:
        if min(items) == 0:
            return
        passed: list[Any] = []
        for arg in args:
            if hasattr(arg, "base_data"):
                passed += arg.base_data, np.uint64(arg.offset // arg.dtype.itemsize)
            else:
                passed.append(_scalar(arg, self._real))
        groups = _groups(items, group)
        whole = tuple(n * size for n, size in zip(groups, group, strict=True))
        self._built.launch(kernel, self._queue, whole, tuple(group), passed)

    def scratch(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Any:
        import pyopencl.array as cl_array

        return cl_array.empty(self._queue, shape, dtype)


# --- OpenCL binaries, for devices whose compilers take hours ------------------------------------

_binaries: tuple[Path, bool] | None = None


def use_binaries(folder: Path | None, save: bool = False) -> None:
    """Take compiled OpenCL programs from files.

    Parameters
    ----------
    folder : path or None
        Where they are; None compiles from source again.
    save : bool
        Compile what the folder lacks, and put it there.  Without it, what it lacks is an error.
    """
    global _binaries
    _binaries = None if folder is None else (folder, save)


def binary_name(source: Source, device: Any, options: tuple[str, ...]) -> str:
    """Return the name of the file for a program on a device: the source's and a fingerprint."""
    made_of = source.text("opencl"), *options, device.name, device.driver_version
    digest = hashlib.sha256("\0".join(made_of).encode()).hexdigest()
    return f"{source.name}-{digest[:16]}.bin"


def _compile(source: Source, context: Any, device: Any, options: tuple[str, ...]) -> Any:
    import pyopencl as cl

    if _binaries is None:
        return cl.Program(context, source.text("opencl")).build(list(options), devices=[device])
    folder, save = _binaries
    path = folder / binary_name(source, device, options)
    if save and not path.exists():
        made = cl.Program(context, source.text("opencl")).build(list(options), devices=[device])
        devices = made.get_info(cl.program_info.DEVICES)
        binary = made.get_info(cl.program_info.BINARIES)[devices.index(device)]
        path.write_bytes(binary)
    return cl.Program(context, [device], [path.read_bytes()]).build()


# --- CUDA -----------------------------------------------------------------------------------------


@functools.cache
def _cuda_module(source: Source, options: tuple[str, ...]) -> Any:
    import cupy

    # CuPy compiles it once for each device that it is used on.
    return cupy.RawModule(code=source.text("cuda"), options=options, backend="nvrtc")


class _CudaProgram:
    def __init__(self, source: Source, like: Any, constants: dict[str, int | str]) -> None:
        self._real = like.dtype.type
        self.traits = traits(like)
        self.lanes = _lanes(source, self.traits.scalar)
        self._module = _cuda_module(source, source.options("cuda", like.dtype, **constants))

    def launch(self, kernel: str, items: Sequence[int], group: Sequence[int], *args: Any) -> None:
        if min(items) == 0:
            return
        passed = tuple(_scalar(arg, self._real) for arg in args)
        groups = _groups(items, group)
        if len(groups) == 2:
            height = min(groups[1], GRID_HEIGHT)
            groups = groups[0], height, -(-groups[1] // height)
        self._module.get_function(kernel)(groups, tuple(group), passed)

    def scratch(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Any:
        import cupy

        return cupy.empty(shape, dtype)
