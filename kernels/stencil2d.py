"""One step of a five-point stencil on a grid, as in Jacobi's method and explicit heat flow."""

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

STENCIL2D = Source("stencil2d")
GROUP = (64, 4)


@task(flops=lambda u, v, centre=0.0, side=0.25: 6 * u.size, rtol=1e-5)
def stencil2d(u: In[Array], v: Out[Array], centre: float = 0.0, side: float = 0.25) -> None:
    """Write one step from the grid `u` into the grid `v`.

    v[i, j] = centre·u[i, j] + side·(u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1]); the border of
    the grid stays as it is.

    Parameters
    ----------
    u, v : array of float, (H, W)
        Two arrays that share no memory.
    centre, side : float
        Weights of a point and of its neighbours.  The defaults are a step of Jacobi's method for
        Laplace's equation.

    Raises
    ------
    ValueError
        If the shapes differ.
    """
    _check(u, v)
    np.copyto(v, u)
    if min(u.shape) > 2:
        inner = v[1:-1, 1:-1]
        np.add(u[:-2, 1:-1] + u[2:, 1:-1], u[1:-1, :-2] + u[1:-1, 2:], out=inner)
        inner *= side
        inner += centre * u[1:-1, 1:-1]


def _check(u: Any, v: Any) -> None:
    if u.ndim != 2 or u.shape != v.shape:
        raise ValueError(f"u {u.shape} and v {v.shape} are not grids of one shape")


def _contiguous(u: Array, v: Array, *_: float, **__: float) -> bool:
    return one_precision(u, v) and u.flags.c_contiguous and v.flags.c_contiguous


@stencil2d.variant("cpu", when=_contiguous)
def stencil2d_numba(u: Array, v: Array, centre: float = 0.0, side: float = 0.25) -> None:
    """Do it in one pass, a row at a time."""
    _check(u, v)
    real = v.dtype.type
    _stencil2d(u, v, real(centre), real(side))


@lazy_njit
def _stencil2d(u: Array, v: Array, centre: float, side: float) -> None:
    height, width = u.shape
    v[:1] = u[:1]
    v[height - 1 :] = u[height - 1 :]
    for i in range(1, height - 1):
        above, here, below, out = u[i - 1], u[i], u[i + 1], v[i]
        out[:1] = here[:1]
        out[width - 1 :] = here[width - 1 :]
        for j in range(1, width - 1):
            out[j] = centre * here[j] + side * ((above[j] + below[j]) + (here[j - 1] + here[j + 1]))


def _device(u: Array, v: Array, *_: float, **__: float) -> bool:
    return one_precision(u, v)


def _numba_cuda(u: Array, v: Array, *_: float, **__: float) -> bool:
    return has_numba_cuda() and one_precision(u, v)


@stencil2d.variant("cuda", when=_numba_cuda)
def stencil2d_numba_cuda(u: Any, v: Any, centre: float = 0.0, side: float = 0.25) -> None:
    """Use an item per point, in a kernel that Numba compiles."""
    from legato_rt.kernels import numba_cuda

    _check(u, v)
    numba_cuda.step(u, v, centre, side)


@stencil2d.variant("cuda", when=_device)
@stencil2d.variant("opencl", when=_device)
def stencil2d_device(u: Any, v: Any, centre: float = 0.0, side: float = 0.25) -> None:
    """Use an item per point."""
    _check(u, v)
    height, width = u.shape
    build(STENCIL2D, v).launch(
        "stencil2d", (width, height), GROUP, height, width, float(centre), float(side), u, v
    )
