"""Cholesky factorisation and triangular solve on a device, in blocks: products do most of the work.

On CUDA they are cuSOLVER's and cuBLAS's, through CuPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from legato_rt.kernels.device_launch import build, traits
from legato_rt.kernels.device_products import multiply
from legato_rt.kernels.device_source import Source

FACTOR = Source("factor", lanes=32, BLOCK=32)
BLOCK = int(FACTOR.constants["BLOCK"])
GROUP = 32


def gemm_device(
    a: Any,
    b: Any,
    c: Any,
    alpha: float = 1.0,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> None:
    """The device variant of `gemm`."""
    multiply(a, b, c, alpha, 1.0, transpose_a, transpose_b)


def syrk_device(a: Any, c: Any, alpha: float = 1.0) -> None:
    """The device variant of `syrk`."""
    multiply(a, a, c, alpha, 1.0, transpose_b=True, lower=True)


def trsm_device(lower: Any, b: Any) -> None:
    """The device variant of `trsm`."""
    if lower.shape != (b.shape[1], b.shape[1]):
        raise ValueError(f"lower {lower.shape} and b {b.shape} do not fit")
    if b.size == 0:
        return
    if traits(b).kind == "cuda":
        from cupyx.scipy.linalg import solve_triangular

        b[...] = solve_triangular(lower, b.T, lower=True).T
        return
    size = len(lower)
    for start in range(0, size, BLOCK):
        stop = min(size, start + BLOCK)
        if start:
            done, row = b[:, :start], lower[start:stop, :start]
            multiply(done, row, b[:, start:stop], -1.0, transpose_b=True)
        _solve(lower[start:stop, start:stop], b[:, start:stop])


def potrf_device(a: Any) -> None:
    """The device variant of `potrf`.

    Raises
    ------
    LinAlgError
        If the matrix is not positive definite: from the first pivot that is not positive on, the
        factor is NaN, and so its last element is looked at, which waits for the device.
    """
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise ValueError(f"a matrix of shape {a.shape} has no Cholesky factor")
    if a.size == 0:
        return
    if traits(a).kind == "cuda":
        import cupy

        cupy.copyto(a, cupy.linalg.cholesky(a), where=cupy.tri(*a.shape, dtype=bool))
        _check_factor(a)
        return
    size = len(a)
    for start in range(0, size, BLOCK):
        stop = min(size, start + BLOCK)
        diagonal, below = a[start:stop, start:stop], a[stop:, start:stop]
        if start:
            left = a[start:, :start]
            multiply(left, left[: stop - start], a[start:, start:stop], -1.0, 1.0,
                     transpose_b=True, lower=True)  # fmt: skip
        program = build(FACTOR, a)
        lanes = program.lanes
        program.launch("potrf_block", (lanes,), (lanes,), len(diagonal), diagonal, _row(a))
        if stop < size:
            _solve(diagonal, below)
    _check_factor(a)


def _check_factor(a: Any) -> None:
    if not np.isfinite(float(a[-1, -1].get())):
        raise np.linalg.LinAlgError("the matrix is not positive definite")


def _solve(lower: Any, b: Any) -> None:
    """Solve for one block of columns."""
    program = build(FACTOR, b)
    program.launch(
        "trsm_block", (len(b),), (GROUP,), len(b), len(lower), lower, _row(lower), b, _row(b)
    )


def _row(array: Any) -> int:
    """Return how many elements apart rows are."""
    elements: int = array.strides[0] // array.dtype.itemsize
    return elements
