"""Largest value of each square window of an image, and its gradient.

Images are channels last, (N, H, W, C). Windows of `size` × `size` do not overlap; rows and
columns that fill no window are left out, and get no gradient.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from legato_rt.access import In, Out
from legato_rt.kernels.device_network import maxpool_device, maxpool_grad_device
from legato_rt.kernels.device_source import leading
from legato_rt.kernels.jit import lazy_njit
from legato_rt.task import task

Array: TypeAlias = npt.NDArray[Any]


def _windows(x: Array, size: int) -> Array:
    """Lay the windows of `x` out as (N, OH, OW, size·size, C), rows of a window first."""
    n, h, w, c = x.shape
    oh, ow = h // size, w // size
    cut = x[:, : oh * size, : ow * size].reshape(n, oh, size, ow, size, c)
    return cut.transpose(0, 1, 3, 2, 4, 5).reshape(n, oh, ow, size * size, c)


@task(flops=lambda x, y, size=2: x.size, rtol=0.0)
def maxpool(x: In[Array], y: Out[Array], size: int = 2) -> None:
    """Write the largest value of each window of `x` into `y`; NaN counts as the largest.

    Parameters
    ----------
    x : array of float, (N, H, W, C)
    y : array of float, (N, H // size, W // size, C)
    size : int
        Side of a window, and the step from one to the next.
    """
    np.max(_windows(x, size), axis=3, out=y)


@task(flops=lambda x, dy, dx, size=2: x.size, rtol=0.0)
def maxpool_grad(x: In[Array], dy: In[Array], dx: Out[Array], size: int = 2) -> None:
    """Write the gradient with respect to x into `dx`.

    The whole of a window's gradient goes to its largest value, the first in row order where
    several are equal.

    Parameters
    ----------
    x : array of float, (N, H, W, C)
        What `maxpool` was given.
    dy : array of float, (N, H // size, W // size, C)
    dx : array of float, (N, H, W, C)
    size : int
        As for `maxpool`.
    """
    n, oh, ow, c = dy.shape
    spread = np.zeros((n, oh, ow, size * size, c), dx.dtype)
    first = np.argmax(_windows(x, size), axis=3)[:, :, :, None]
    np.put_along_axis(spread, first, dy[:, :, :, None], axis=3)
    spread = spread.reshape(n, oh, ow, size, size, c).transpose(0, 1, 3, 2, 4, 5)
    dx[...] = 0
    dx[:, : oh * size, : ow * size] = spread.reshape(n, oh * size, ow * size, c)


def _contiguous(x: Array, y: Array, size: int = 2) -> bool:
    return x.flags.c_contiguous and y.flags.c_contiguous


@maxpool.variant("cpu", when=_contiguous)
def maxpool_numba(x: Array, y: Array, size: int = 2) -> None:
    """Do it in one pass, the channels in vectors."""
    _maxpool(x, y, size)


@lazy_njit
def _maxpool(x: Array, y: Array, size: int) -> None:
    n, oh, ow, c = y.shape
    if x.shape[0] != n or x.shape[1] // size != oh or x.shape[2] // size != ow or x.shape[3] != c:
        raise ValueError("the output's shape is not that of the pooled images")
    for i in range(n):
        for p in range(oh):
            for q in range(ow):
                best = y[i, p, q]
                best[:] = x[i, p * size, q * size]
                for k in range(1, size * size):
                    values = x[i, p * size + k // size, q * size + k % size]
                    for j in range(c):
                        # Only a NaN differs from itself.
                        larger = values[j] > best[j] or values[j] != values[j]
                        best[j] = values[j] if larger else best[j]


def _contiguous_grad(x: Array, dy: Array, dx: Array, size: int = 2) -> bool:
    return x.flags.c_contiguous and dy.flags.c_contiguous and dx.flags.c_contiguous


@maxpool_grad.variant("cpu", when=_contiguous_grad)
def maxpool_grad_numba(x: Array, dy: Array, dx: Array, size: int = 2) -> None:
    """Find the largest value of a window and write its gradient in one pass."""
    _maxpool_grad(x, dy, dx, size)


@lazy_njit
def _maxpool_grad(x: Array, dy: Array, dx: Array, size: int) -> None:
    n, oh, ow, c = dy.shape
    if x.shape != dx.shape:
        raise ValueError("dx must have the shape of x")
    if x.shape[0] != n or x.shape[1] // size != oh or x.shape[2] // size != ow or x.shape[3] != c:
        raise ValueError("dy must have the shape of the pooled images")
    dx[:] = 0
    best, first = np.empty(c, x.dtype), np.empty(c, np.int32)
    for i in range(n):
        for p in range(oh):
            for q in range(ow):
                best[:] = x[i, p * size, q * size]
                first[:] = 0
                for k in range(1, size * size):
                    values = x[i, p * size + k // size, q * size + k % size]
                    for j in range(c):
                        nan = values[j] != values[j] and best[j] == best[j]
                        larger = values[j] > best[j] or nan
                        best[j] = values[j] if larger else best[j]
                        first[j] = k if larger else first[j]
                slopes = dy[i, p, q]
                for k in range(size * size):
                    target = dx[i, p * size + k // size, q * size + k % size]
                    for j in range(c):
                        target[j] = slopes[j] if first[j] == k else 0


for _kind in ("opencl", "cuda"):
    maxpool.variant(_kind, when=leading(2))(maxpool_device)
    maxpool_grad.variant(_kind, when=leading(3))(maxpool_grad_device)
