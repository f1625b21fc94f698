"""BLAS and LAPACK on views, in place, through the routines that come with SciPy.

The wrappers in `scipy.linalg.blas` know no leading dimension: they copy a tile of a larger array
before and after the call.  So the routines are called here at the addresses that SciPy exports for
compiled code, with ctypes, which lets go of the GIL meanwhile.  The addresses say nothing about
sizes: whoever calls checks the shapes first.

To BLAS, which counts down columns, a matrix in rows is its transpose, and a lower triangle an upper
one.

SciPy is loaded here and now, because the CPU driver holds those BLAS threads to a worker's share
that are loaded when a runtime opens.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from ctypes import addressof, c_char_p, c_double, c_float, c_int, c_void_p, pythonapi
from typing import Any

import numpy as np
import numpy.typing as npt

try:
    from scipy.linalg import cython_blas, cython_lapack
except ImportError:
    AVAILABLE = False
else:
    AVAILABLE = True

Array = npt.NDArray[Any]

_LETTERS = {np.dtype(np.float32): "s", np.dtype(np.float64): "d"}
REAL: dict[np.dtype[Any], type[c_float] | type[c_double]] = {
    np.dtype(np.float32): c_float,
    np.dtype(np.float64): c_double,
}
"""The C type of a scalar that goes with matrices of a type."""


class Integers(dict[int, int]):
    """Address of a C integer of any value, made once and never changed or freed."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: list[c_int] = []

    def __missing__(self, value: int) -> int:
        self._kept.append(c_int(value))
        address = self[value] = addressof(self._kept[-1])
        return address


INTEGER = Integers()


def fits(*matrices: Array) -> bool:
    """Whether BLAS can work on the memory of these: one precision, elements of a row adjacent."""
    dtype = matrices[0].dtype
    return dtype in _LETTERS and all(_fits(x, dtype) for x in matrices)


def _fits(x: Array, dtype: np.dtype[Any]) -> bool:
    if x.ndim != 2 or x.dtype != dtype or not x.flags.aligned:
        return False
    step, next_to = x.strides
    size = x.itemsize
    return next_to == size and step % size == 0 and step >= size * max(x.shape[1], 1)


def matrix(x: Array, dtype: np.dtype[Any], written: bool = False) -> tuple[int, int]:
    """Address of the elements, and address of the leading dimension.

    Raises
    ------
    ValueError
        If BLAS cannot work on it, or must not write it.
    """
    if not _fits(x, dtype):
        raise ValueError(f"BLAS wants {dtype} in rows, not {x.dtype} with strides {x.strides}")
    address, read_only = x.__array_interface__["data"]
    if written and read_only:
        raise ValueError("the output array is read-only")
    return address, INTEGER[x.strides[0] // x.itemsize]


@functools.cache
def routine(name: str, dtype: np.dtype[Any]) -> Callable[..., None]:
    """The routine of a name without its letter for the precision, such as ``gemm``.

    It takes bytes for flags, and an address or `ctypes.byref` for everything else.
    """
    exported = {**cython_blas.__pyx_capi__, **cython_lapack.__pyx_capi__}[_LETTERS[dtype] + name]
    signature = _capsule_name(exported)
    parameters = signature.decode().partition("(")[2].split(",")
    types = [c_char_p if "char" in parameter else c_void_p for parameter in parameters]
    return ctypes.CFUNCTYPE(None, *types)(_capsule_pointer(exported, signature))


_capsule_name = pythonapi.PyCapsule_GetName
_capsule_name.argtypes = [ctypes.py_object]
_capsule_name.restype = c_char_p
_capsule_pointer = pythonapi.PyCapsule_GetPointer
_capsule_pointer.argtypes = [ctypes.py_object, c_char_p]
_capsule_pointer.restype = c_void_p
