"""Scaled vector added to another, y ← y + alpha·x, in place."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from legato_rt.access import In, InOut
from legato_rt.kernels.device_launch import build
from legato_rt.kernels.device_source import Source, one_precision
from legato_rt.kernels.jit import lazy_njit
from legato_rt.task import task

Array: TypeAlias = npt.NDArray[Any]

AXPY = Source("axpy")
GROUP = 128


@task(flops=lambda alpha, x, y: 2 * x.size, rtol=1e-5)
def axpy(alpha: float, x: In[Array], y: InOut[Array]) -> None:
    """Add alpha·x to `y`.

    Parameters
    ----------
    alpha : float
    x, y : array of float, of one shape

    Raises
    ------
    ValueError
        If the shapes differ.
    """
    _check(x, y)
    np.add(y, alpha * x, out=y, casting="same_kind")


def _check(x: Any, y: Any) -> None:
    if x.shape != y.shape:
        raise ValueError(f"x {x.shape} and y {y.shape} differ in shape")


def _contiguous(alpha: float, x: Array, y: Array) -> bool:
    return one_precision(x, y) and x.flags.c_contiguous and y.flags.c_contiguous


@axpy.variant("cpu", when=_contiguous)
def axpy_numba(alpha: float, x: Array, y: Array) -> None:
    """Add in one pass, without a temporary array."""
    _check(x, y)
    _axpy(y.dtype.type(alpha), x.reshape(-1), y.reshape(-1))


@lazy_njit
def _axpy(alpha: float, x: Array, y: Array) -> None:
    for i in range(y.size):
        y[i] += alpha * x[i]


def _device(alpha: float, x: Array, y: Array) -> bool:
    return one_precision(x, y)


@axpy.variant("cuda", when=_device)
@axpy.variant("opencl", when=_device)
def axpy_device(alpha: float, x: Any, y: Any) -> None:
    """Use an item per element."""
    _check(x, y)
    build(AXPY, y).launch("axpy", (y.size,), (GROUP,), y.size, float(alpha), x, y)
