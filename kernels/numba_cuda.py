"""Kernels for NVIDIA GPUs in Python, compiled by Numba.

Importing this loads Numba's CUDA target, so the variants that use it import it when they run.  With
``NUMBA_ENABLE_CUDASIM=1`` set before that, Numba simulates the kernels on NumPy arrays.
"""

from __future__ import annotations

from typing import Any

import numba
import numba.cuda

config: Any = numba.config
cuda: Any = numba.cuda

GROUP = 64
TILE = 8


def _stream() -> Any:
    """Return CuPy's current stream as Numba knows it."""
    if config.ENABLE_CUDASIM:
        return 0
    import cupy

    return cuda.external_stream(cupy.cuda.get_current_stream().ptr)


def assign(points: Any, centres: Any, labels: Any, distances: Any) -> None:
    """Enqueue the kernel of `kmeans_assign`, an item per point."""
    n = len(points)
    if n:
        groups = -(-n // GROUP)
        zero = distances.dtype.type(0)
        _assign[groups, GROUP, _stream()](points, centres, labels, distances, zero)


@cuda.jit
def _assign(points: Any, centres: Any, labels: Any, distances: Any, zero: Any) -> None:
    i = cuda.grid(1)
    if i < points.shape[0]:
        nearest, label = zero, 0
        for c in range(centres.shape[0]):
            total = zero
            for d in range(points.shape[1]):
                off = points[i, d] - centres[c, d]
                total += off * off
            # A NaN counts as nearest; it differs from itself.
            if c == 0 or total < nearest or (total != total and nearest == nearest):
                nearest, label = total, c
        labels[i] = label
        distances[i] = nearest


def step(u: Any, v: Any, centre: float, side: float) -> None:
    """Enqueue the kernel of `stencil2d`, an item per point."""
    height, width = u.shape
    if u.size:
        real = v.dtype.type
        groups = -(-width // TILE), -(-height // TILE)
        _step[groups, (TILE, TILE), _stream()](u, v, real(centre), real(side))


@cuda.jit
def _step(u: Any, v: Any, centre: Any, side: Any) -> None:
    j, i = cuda.grid(2)
    height, width = u.shape
    if i < height and j < width:
        if i == 0 or j == 0 or i == height - 1 or j == width - 1:
            v[i, j] = u[i, j]
        else:
            around = (u[i - 1, j] + u[i + 1, j]) + (u[i, j - 1] + u[i, j + 1])
            v[i, j] = centre * u[i, j] + side * around
