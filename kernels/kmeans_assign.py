"""The nearest centre of each point: the step of k-means that takes the time."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from legato_rt.access import In, Out
from legato_rt.kernels.device_launch import build
from legato_rt.kernels.device_source import Source, has_numba_cuda, one_precision
from legato_rt.kernels.jit import lazy_njit
from legato_rt.task import task

Array: TypeAlias = npt.NDArray[Any]

KMEANS = Source("kmeans_assign")
GROUP = 64
BLOCK = 256
"""Points that NumPy takes at a time, to keep the differences in cache."""


@task(flops=lambda points, centres, *_: 3 * points.shape[0] * centres.size, rtol=1e-5)
def kmeans_assign(
    points: In[Array], centres: In[Array], labels: Out[Array], distances: Out[Array]
) -> None:
    """Write each point's nearest centre into `labels`, and its squared distance into `distances`.

    Of centres that are equally near the first counts; a distance that is NaN counts as nearest.

    Parameters
    ----------
    points : array of float, (N, D)
    centres : array of float, (K, D)
        At least one.
    labels : array of int32, (N,)
    distances : array of float, (N,)

    Raises
    ------
    ValueError
        If the shapes do not fit, or there is no centre.
    """
    _check(points, centres, labels, distances)
    for start in range(0, len(points), BLOCK):
        block = slice(start, start + BLOCK)
        squares = np.square(points[block, None] - centres).sum(axis=2)
        labels[block] = squares.argmin(axis=1)
        distances[block] = np.take_along_axis(squares, labels[block, None], axis=1)[:, 0]


def _check(points: Any, centres: Any, labels: Any, distances: Any) -> None:
    n, d = points.shape
    k = centres.shape[0]
    if centres.shape != (k, d) or k == 0 or not labels.shape == distances.shape == (n,):
        raise ValueError(
            f"points {points.shape}, centres {centres.shape}, labels {labels.shape} and "
            f"distances {distances.shape} do not fit"
        )


def _fits(points: Array, centres: Array, labels: Array, distances: Array) -> bool:
    return one_precision(points, centres, distances) and labels.dtype == np.int32


@kmeans_assign.variant("cpu", when=_fits)
def kmeans_assign_numba(points: Array, centres: Array, labels: Array, distances: Array) -> None:
    """Compare a point with all centres at once, in vectors."""
    _check(points, centres, labels, distances)
    _assign(points, np.ascontiguousarray(centres.T), labels, distances)


@lazy_njit
def _assign(points: Array, centres: Array, labels: Array, distances: Array) -> None:
    dimensions, k = centres.shape
    squares = np.empty(k, points.dtype)
    for i in range(points.shape[0]):
        squares[:] = 0
        for d in range(dimensions):
            value, line = points[i, d], centres[d]
            for c in range(k):
                squares[c] += (value - line[c]) * (value - line[c])
        nearest, label = squares[0], 0
        for c in range(1, k):
            # A NaN differs from itself.
            nan = squares[c] != squares[c] and nearest == nearest
            if squares[c] < nearest or nan:
                nearest, label = squares[c], c
        labels[i] = label
        distances[i] = nearest


def _numba_cuda(points: Array, centres: Array, labels: Array, distances: Array) -> bool:
    return has_numba_cuda() and _fits(points, centres, labels, distances)


@kmeans_assign.variant("cuda", when=_numba_cuda)
def kmeans_assign_numba_cuda(points: Any, centres: Any, labels: Any, distances: Any) -> None:
    """Use an item per point, in a kernel that Numba compiles."""
    from legato_rt.kernels import numba_cuda

    _check(points, centres, labels, distances)
    numba_cuda.assign(points, centres, labels, distances)


@kmeans_assign.variant("cuda", when=_fits)
@kmeans_assign.variant("opencl", when=_fits)
def kmeans_assign_device(points: Any, centres: Any, labels: Any, distances: Any) -> None:
    """Use an item per point."""
    _check(points, centres, labels, distances)
    (n, dimensions), k = points.shape, len(centres)
    build(KMEANS, distances).launch(
        "kmeans_assign", (n,), (GROUP,), n, k, dimensions, points, centres, labels, distances
    )
