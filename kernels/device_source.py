"""Texts of the device kernels and the options that they are compiled with.

A kernel is written once, in OpenCL C, in ``kernels/opencl/NAME.cl``.  ``kernels/cuda/prelude.cu``
gives CUDA the words it lacks, so that NVRTC compiles the same text.  `real` in a kernel is the
precision of the arrays; constants, such as the side of a tile, are set when a program is built.

Nothing here needs OpenCL or CUDA to be installed.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

FOLDER = Path(__file__).parent
PRELUDES = {"opencl": "opencl/prelude.cl", "cuda": "cuda/prelude.cu"}
FLAGS = {"opencl": ("-cl-std=CL1.2",), "cuda": ("-default-device",)}
REAL = {np.dtype(np.float32): "float", np.dtype(np.float64): "double"}
"""How C writes the precisions that the kernels are built for."""

SOURCES: dict[str, Source] = {}
"""Every source by its name, once the module that launches it is imported."""


class Source:
    """One source file, and the constants that its kernels are built with unless told otherwise.

    Parameters
    ----------
    name : str
        The file is ``opencl/NAME.cl``.
    lanes : int, optional
        Items of a group that share a row or a segment on a GPU; a power of two.  None if the
        kernels share nothing.
    **constants : int or str
        Macros.
    """

    def __init__(self, name: str, lanes: int | None = None, **constants: int | str) -> None:
        self.name = name
        self.lanes = lanes
        self.constants: Mapping[str, int | str] = constants
        SOURCES[name] = self

    def __repr__(self) -> str:
        return f"<kernel source {self.name}>"

    def text(self, kind: str) -> str:
        """Return what a compiler for devices of this kind, ``opencl`` or ``cuda``, is given."""
        return _text(self.name, kind)

    def options(self, kind: str, dtype: npt.DTypeLike, **constants: int | str) -> tuple[str, ...]:
        """Return the compiler's options for a precision; `constants` go before the source's own.

        Raises
        ------
        TypeError
            If the kernels are not built for this precision.
        """
        real = REAL.get(np.dtype(dtype))
        if real is None:
            raise TypeError(f"the kernels of {self.name} are built for float32 and float64 only")
        lanes = {} if self.lanes is None else {"LANES": self.lanes}
        macros = {**lanes, **self.constants, **constants, "real": real}
        return (*FLAGS[kind], *(f"-D{name}={value}" for name, value in sorted(macros.items())))


@functools.cache
def _text(name: str, kind: str) -> str:
    parts = PRELUDES[kind], "opencl/lanes.cl", f"opencl/{name}.cl"
    return "\n".join((FOLDER / part).read_text(encoding="utf-8") for part in parts)


def one_precision(*arrays: Any) -> bool:
    """Whether all of these are arrays of one precision that the kernels are built for."""
    dtype = getattr(arrays[0], "dtype", None)
    return dtype in REAL and all(getattr(array, "dtype", None) == dtype for array in arrays)


def leading(count: int) -> Callable[..., bool]:
    """Return a variant's condition: its first `count` arguments are arrays of one precision."""

    def when(*args: Any) -> bool:
        return one_precision(*args[:count])

    return when


@functools.cache
def has_numba_cuda() -> bool:
    """Whether Numba's CUDA target is installed, asked without loading it."""
    return importlib.util.find_spec("numba_cuda") is not None
