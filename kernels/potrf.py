"""Cholesky factorisation, a = l·lᵀ, of one tile, in place."""

from __future__ import annotations

from ctypes import byref, c_int
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from legato_rt.access import InOut
from legato_rt.kernels import blas
from legato_rt.kernels.device_factors import potrf_device
from legato_rt.kernels.device_source import leading
from legato_rt.task import task

Array: TypeAlias = npt.NDArray[Any]


@task(flops=lambda a: a.shape[0] ** 3 // 3, rtol=1e-4)
def potrf(a: InOut[Array]) -> None:
    """Write the lower factor over the lower triangle of `a`.

    What is above the diagonal is neither read nor written.

    Parameters
    ----------
    a : array, (N, N)
        Symmetric and positive definite.

    Raises
    ------
    numpy.linalg.LinAlgError
        If it is not positive definite.
    ValueError
        If it is not square.
    """
    _check(a)
    np.copyto(a, np.linalg.cholesky(a), where=np.tri(*a.shape, dtype=np.bool_))


def _check(a: Array) -> None:
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise ValueError(f"a matrix of shape {a.shape} has no Cholesky factor")


def potrf_lapack(a: Array) -> None:
    """Factorise in place; if that fails, part of `a` is overwritten."""
    _check(a)
    address, leading = blas.matrix(a, a.dtype, written=True)
    info = c_int(0)
    blas.routine("potrf", a.dtype)(b"U", blas.INTEGER[len(a)], address, leading, byref(info))
    if info.value > 0:
        raise np.linalg.LinAlgError(
            f"the matrix is not positive definite: its leading minor of order {info.value}"
        )


if blas.AVAILABLE:
    potrf.variant("cpu", when=blas.fits)(potrf_lapack)


for _kind in ("opencl", "cuda"):
    potrf.variant(_kind, when=leading(1))(potrf_device)
