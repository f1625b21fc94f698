"""The factorisation as tasks, and a matrix to try it on."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from legato_rt.kernels.gemm import gemm
from legato_rt.kernels.potrf import potrf
from legato_rt.kernels.syrk import syrk
from legato_rt.kernels.trsm import trsm

Array = npt.NDArray[Any]


def submit_cholesky(tiles: npt.NDArray[np.object_]) -> None:
    """Submit the right-looking Cholesky factorisation of a matrix cut into tiles.

    The lower triangle of tiles becomes the factor, in place; the tiles above stay as they are.

    Parameters
    ----------
    tiles : array of arrays, (T, T)
        What `legato_rt.tiles` makes of a symmetric positive definite matrix.
    """
    count = len(tiles)
    for k in range(count):
        # The panel is on the critical path: what follows from it must not wait behind updates.
        panel = count - k
        potrf.options(priority=panel).submit(tiles[k, k])
        solve = trsm.options(priority=panel)
        for i in range(k + 1, count):
            solve.submit(tiles[k, k], tiles[i, k])
        for i in range(k + 1, count):
            syrk.submit(tiles[i, k], tiles[i, i], -1.0)
            for j in range(k + 1, i):
                gemm.submit(tiles[i, k], tiles[j, k], tiles[i, j], -1.0, False, True)


def random_matrix(size: int, dtype: str, seed: int) -> Array:
    """Make a symmetric matrix that is positive definite because its diagonal outweighs the rest.

    Parameters
    ----------
    size : int
        Rows and columns.
    dtype : {"float32", "float64"}
    seed : int
    """
    made = np.random.default_rng(seed).random((size, size)).astype(dtype)
    made += made.T.copy()
    made[np.diag_indices(size)] += size
    return made


def flops(size: int) -> float:
    """Floating point operations of a factorisation."""
    return size**3 / 3 + size**2 / 2 + size / 6
