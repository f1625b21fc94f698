"""Fully connected layer, y = x·w + b, and its gradients.

One BLAS call does the work in each direction, so the NumPy body is also the fast one.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from legato_rt.access import In, Out
from legato_rt.kernels.device_network import (
    dense_device,
    dense_input_grad_device,
    dense_weight_grad_device,
)
from legato_rt.kernels.device_source import leading
from legato_rt.task import task

Array: TypeAlias = npt.NDArray[Any]


@task(flops=lambda x, w, b, y: 2 * x.shape[0] * w.size, rtol=1e-5)
def dense(x: In[Array], w: In[Array], b: In[Array], y: Out[Array]) -> None:
    """Write x·w + b into `y`.

    Parameters
    ----------
    x : array of float, (N, K)
    w : array of float, (K, O)
    b : array of float, (O,)
    y : array of float, (N, O)
    """
    np.matmul(x, w, out=y)
    np.add(y, b, out=y)


@task(flops=lambda dy, w, dx: 2 * dy.shape[0] * w.size, rtol=1e-5)
def dense_input_grad(dy: In[Array], w: In[Array], dx: Out[Array]) -> None:
    """Write the gradient with respect to x, dy·wᵀ, into `dx`.

    Parameters
    ----------
    dy : array of float, (N, O)
    w : array of float, (K, O)
    dx : array of float, (N, K)
    """
    np.matmul(dy, w.T, out=dx)


@task(flops=lambda x, dy, dw, db: 2 * x.shape[0] * dw.size, rtol=1e-5)
def dense_weight_grad(x: In[Array], dy: In[Array], dw: Out[Array], db: Out[Array]) -> None:
    """Write the gradients with respect to w, xᵀ·dy, into `dw` and to b, Σ dy, into `db`.

    Parameters
    ----------
    x : array of float, (N, K)
    dy : array of float, (N, O)
    dw : array of float, (K, O)
    db : array of float, (O,)
    """
    np.matmul(x.T, dy, out=dw)
    np.sum(dy, axis=0, out=db)


for _kind in ("opencl", "cuda"):
    dense.variant(_kind, when=leading(4))(dense_device)
    dense_input_grad.variant(_kind, when=leading(3))(dense_input_grad_device)
    dense_weight_grad.variant(_kind, when=leading(4))(dense_weight_grad_device)
