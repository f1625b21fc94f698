"""Symmetric product, c ← c + alpha·a·aᵀ on the lower triangle of c, in place."""

from __future__ import annotations

from ctypes import byref
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from legato_rt.access import In, InOut
from legato_rt.kernels import blas
from legato_rt.kernels.device_factors import syrk_device
from legato_rt.kernels.device_source import leading
from legato_rt.task import task

Array: TypeAlias = npt.NDArray[Any]


@task(flops=lambda a, c, *_, **__: a.shape[1] * a.shape[0] * (a.shape[0] + 1), rtol=1e-5)
def syrk(a: In[Array], c: InOut[Array], alpha: float = 1.0) -> None:
    """Add alpha·a·aᵀ to the lower triangle of `c`, which must share no memory with `a`.

    Above its diagonal `c` stays as it is.

    Parameters
    ----------
    a : array, (N, K)
    c : array, (N, N)
    alpha : float

    Raises
    ------
    ValueError
        If the shapes do not fit.
    """
    product = a @ a.T
    if product.shape != c.shape:
        raise ValueError(f"a product of shape {product.shape} for a c of shape {c.shape}")
    if alpha != 1:
        product *= alpha
    np.add(c, product, out=c, where=np.tri(*c.shape, dtype=np.bool_))


def _fits(a: Array, c: Array, *_: float, **__: float) -> bool:
    return blas.fits(a, c)


def syrk_blas(a: Array, c: Array, alpha: float = 1.0) -> None:
    """Add the triangle alone, without a temporary array."""
    size, inner = a.shape
    if c.shape != (size, size):
        raise ValueError(f"a {a.shape} and c {c.shape} do not fit")
    real = blas.REAL[c.dtype]
    blas.routine("syrk", c.dtype)(
        b"U",
        b"T",
        blas.INTEGER[size],
        blas.INTEGER[inner],
        byref(real(alpha)),
        *blas.matrix(a, c.dtype),
        byref(real(1.0)),
        *blas.matrix(c, c.dtype, written=True),
    )


if blas.AVAILABLE:
    syrk.variant("cpu", when=_fits)(syrk_blas)


for _kind in ("opencl", "cuda"):
    syrk.variant(_kind, when=leading(2))(syrk_device)
