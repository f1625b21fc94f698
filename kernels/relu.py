"""Rectified linear unit, y = max(x, 0), and its gradient."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from legato_rt.access import In, Out
from legato_rt.kernels.device_network import relu_device, relu_grad_device
from legato_rt.kernels.device_source import leading
from legato_rt.kernels.jit import lazy_njit
from legato_rt.task import task

Array: TypeAlias = npt.NDArray[Any]


@task(flops=lambda x, y: x.size, rtol=0.0)
def relu(x: In[Array], y: Out[Array]) -> None:
    """Write max(x, 0) into `y`; a NaN stays a NaN.

    Parameters
    ----------
    x, y : array of float, of one shape
    """
    np.maximum(x, 0, out=y)


@task(flops=lambda y, dy, dx: y.size, rtol=0.0)
def relu_grad(y: In[Array], dy: In[Array], dx: Out[Array]) -> None:
    """Write the gradient with respect to x into `dx`: `dy` where the output was positive, else 0.

    Parameters
    ----------
    y : array of float
        What `relu` put out (its input serves as well: both have the same sign).
    dy, dx : array of float, of the shape of `y`
    """
    np.copyto(dx, np.where(y > 0, dy, 0))


def _contiguous(y: Array, dy: Array, dx: Array) -> bool:
    return y.flags.c_contiguous and dy.flags.c_contiguous and dx.flags.c_contiguous


@relu_grad.variant("cpu", when=_contiguous)
def relu_grad_numba(y: Array, dy: Array, dx: Array) -> None:
    """Do it in one pass and without a temporary array."""
    _relu_grad(y.reshape(-1), dy.reshape(-1), dx.reshape(-1))


@lazy_njit
def _relu_grad(y: Array, dy: Array, dx: Array) -> None:
    if y.size != dy.size or y.size != dx.size:
        raise ValueError("y, dy and dx must have one shape")
    zero = dx.dtype.type(0)
    for i in range(y.size):
        slope = dy[i]  # read in any case, or the loop is not vectorised
        dx[i] = slope if y[i] > 0 else zero


for _kind in ("opencl", "cuda"):
    relu.variant(_kind, when=leading(2))(relu_device)
    relu_grad.variant(_kind, when=leading(3))(relu_grad_device)
