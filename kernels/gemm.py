"""General matrix product, c ← c + alpha·op(a)·op(b), in place."""

from __future__ import annotations

from ctypes import byref
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from legato_rt.access import In, InOut
from legato_rt.kernels import blas
from legato_rt.kernels.device_factors import gemm_device
from legato_rt.kernels.device_source import leading
from legato_rt.task import task

Array: TypeAlias = npt.NDArray[Any]


def _flops(
    a: Array,
    b: Array,
    c: Array,
    alpha: float = 1.0,
    transpose_a: bool = False,
    *_: bool,
    **__: bool,
) -> int:
    return 2 * c.size * int(a.shape[0 if transpose_a else 1])


@task(flops=_flops, rtol=1e-5)
def gemm(
    a: In[Array],
    b: In[Array],
    c: InOut[Array],
    alpha: float = 1.0,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> None:
    """Add alpha·op(a)·op(b) to `c`, which must share no memory with `a` and `b`.

    Parameters
    ----------
    a : array, (M, K), or (K, M) if it is transposed
    b : array, (K, N), or (N, K) if it is transposed
    c : array, (M, N)
    alpha : float
    transpose_a, transpose_b : bool
        Whether op transposes.

    Raises
    ------
    ValueError
        If the shapes do not fit.
    """
    product = (a.T if transpose_a else a) @ (b.T if transpose_b else b)
    if product.shape != c.shape:
        raise ValueError(f"a product of shape {product.shape} for a c of shape {c.shape}")
    if alpha != 1:
        product *= alpha
    np.add(c, product, out=c)


def _fits(a: Array, b: Array, c: Array, *_: float, **__: float) -> bool:
    return blas.fits(a, b, c)


def gemm_blas(
    a: Array,
    b: Array,
    c: Array,
    alpha: float = 1.0,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> None:
    """Add the product without a temporary array."""
    rows, inner = a.shape[::-1] if transpose_a else a.shape
    inner_b, columns = b.shape[::-1] if transpose_b else b.shape
    if inner != inner_b or (rows, columns) != c.shape:
        raise ValueError(f"a {a.shape}, b {b.shape} and c {c.shape} do not fit")
    real = blas.REAL[c.dtype]
    integer = blas.INTEGER
    # To BLAS all are transposed, and so is the product: cᵀ ← cᵀ + alpha·op(b)ᵀ·op(a)ᵀ.
    blas.routine("gemm", c.dtype)(
        b"T" if transpose_b else b"N",
        b"T" if transpose_a else b"N",
        integer[columns],
        integer[rows],
        integer[inner],
        byref(real(alpha)),
        *blas.matrix(b, c.dtype),
        *blas.matrix(a, c.dtype),
        byref(real(1.0)),
        *blas.matrix(c, c.dtype, written=True),
    )


if blas.AVAILABLE:
    gemm.variant("cpu", when=_fits)(gemm_blas)


for _kind in ("opencl", "cuda"):
    gemm.variant(_kind, when=leading(3))(gemm_device)
