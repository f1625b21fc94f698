"""Transpose of a matrix, y = xᵀ."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from legato_rt.access import In, Out
from legato_rt.kernels.device_launch import build
from legato_rt.kernels.device_source import Source, one_precision
from legato_rt.kernels.jit import lazy_njit
from legato_rt.task import task

Array: TypeAlias = npt.NDArray[Any]

TRANSPOSE = Source("transpose", TILE=16)
TILE = int(TRANSPOSE.constants["TILE"])


@task(flops=lambda x, y: 0, rtol=0.0)
def transpose(x: In[Array], y: Out[Array]) -> None:
    """Write the transpose of `x` into `y`, which must share no memory with it.

    Parameters
    ----------
    x : array, (M, N)
    y : array, (N, M)

    Raises
    ------
    ValueError
        If the shapes do not fit.
    """
    _check(x, y)
    np.copyto(y, x.T)


def _check(x: Any, y: Any) -> None:
    if x.ndim != 2 or y.shape != x.shape[::-1]:
        raise ValueError(f"y {y.shape} has not the shape of the transpose of x {x.shape}")


def _contiguous(x: Array, y: Array) -> bool:
    return one_precision(x, y) and x.flags.c_contiguous and y.flags.c_contiguous


@transpose.variant("cpu", when=_contiguous)
def transpose_numba(x: Array, y: Array) -> None:
    """Go tile by tile, so that both arrays' lines stay in cache."""
    _check(x, y)
    _transpose(x, y, 32)


@lazy_njit
def _transpose(x: Array, y: Array, tile: int) -> None:
    rows, columns = x.shape
    for top in range(0, rows, tile):
        bottom = min(rows, top + tile)
        for left in range(0, columns, tile):
            for j in range(left, min(columns, left + tile)):
                out = y[j]
                for i in range(top, bottom):
                    out[i] = x[i, j]


def _device(x: Array, y: Array) -> bool:
    return one_precision(x, y)


@transpose.variant("cuda", when=_device)
@transpose.variant("opencl", when=_device)
def transpose_device(x: Any, y: Any) -> None:
    """Move tiles through local memory."""
    _check(x, y)
    height, width = x.shape
    build(TRANSPOSE, y).launch("transpose", (width, height), (TILE, TILE), height, width, x, y)
