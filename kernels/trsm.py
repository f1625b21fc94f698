"""Triangular solve for many right-hand sides, x·lowerᵀ = b, in place."""

from __future__ import annotations

from ctypes import byref
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from legato_rt.access import In, InOut
from legato_rt.kernels import blas
from legato_rt.kernels.device_factors import trsm_device
from legato_rt.kernels.device_source import leading
from legato_rt.task import task

Array: TypeAlias = npt.NDArray[Any]


@task(flops=lambda lower, b: b.size * lower.shape[0], rtol=1e-4)
def trsm(lower: In[Array], b: InOut[Array]) -> None:
    """Solve x·lowerᵀ = b and write x over `b`, which must share no memory with `lower`.

    Parameters
    ----------
    lower : array, (N, N)
        Lower triangular, without a zero on the diagonal; what is above it is not read.
    b : array, (M, N)

    Raises
    ------
    ValueError
        If the shapes do not fit.
    """
    _check(lower, b)
    b[...] = np.linalg.solve(np.tril(lower), b.T).T


def _check(lower: Array, b: Array) -> None:
    if lower.ndim != 2 or b.ndim != 2 or lower.shape != (b.shape[1], b.shape[1]):
        raise ValueError(f"lower {lower.shape} and b {b.shape} do not fit")


def _fits(lower: Array, b: Array) -> bool:
    return blas.fits(lower, b)


def trsm_blas(lower: Array, b: Array) -> None:
    """Substitute in place."""
    _check(lower, b)
    rows, size = b.shape
    # To BLAS all are transposed: the triangle it is given is upper, and it solves lower·xᵀ = bᵀ.
    blas.routine("trsm", b.dtype)(
        b"L",
        b"U",
        b"T",
        b"N",
        blas.INTEGER[size],
        blas.INTEGER[rows],
        byref(blas.REAL[b.dtype](1.0)),
        *blas.matrix(lower, b.dtype),
        *blas.matrix(b, b.dtype, written=True),
    )


if blas.AVAILABLE:
    trsm.variant("cpu", when=_fits)(trsm_blas)


for _kind in ("opencl", "cuda"):
    trsm.variant(_kind, when=leading(2))(trsm_device)
