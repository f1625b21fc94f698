"""Layer normalisation over the last axis."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from legato_rt.access import In, Out
from legato_rt.kernels.device_launch import build
from legato_rt.kernels.device_source import Source, one_precision
from legato_rt.kernels.jit import lazy_njit
from legato_rt.task import task

Array: TypeAlias = npt.NDArray[Any]

LAYERNORM = Source("layernorm", lanes=64)


@task(flops=lambda x, *_, **__: 8 * x.size, rtol=1e-5)
def layernorm(
    x: In[Array], gamma: In[Array], beta: In[Array], y: Out[Array], epsilon: float = 1e-5
) -> None:
    """Write gamma·(x - mean) / √(variance + epsilon) + beta of each row into `y`.

    Mean and variance (that of a whole population) are added up in double precision.

    Parameters
    ----------
    x, y : array of float, of one shape (..., K)
    gamma, beta : array of float, (K,)
    epsilon : float

    Raises
    ------
    ValueError
        If the shapes do not fit.
    """
    _check(x, gamma, beta, y)
    if x.size:
        mean = x.mean(axis=-1, keepdims=True, dtype=np.float64)
        variance = np.square(x - mean).mean(axis=-1, keepdims=True)
        y[...] = (x - mean) / np.sqrt(variance + epsilon) * gamma + beta


def _check(x: Any, gamma: Any, beta: Any, y: Any) -> None:
    if x.ndim == 0 or x.shape != y.shape or not gamma.shape == beta.shape == x.shape[-1:]:
        raise ValueError(f"x {x.shape}, gamma {gamma.shape}, beta {beta.shape}, y {y.shape}")


def _contiguous(x: Array, gamma: Array, beta: Array, y: Array, *_: float, **__: float) -> bool:
    arrays = x, gamma, beta, y
    return one_precision(*arrays) and all(array.flags.c_contiguous for array in arrays)


@layernorm.variant("cpu", when=_contiguous)
def layernorm_numba(x: Array, gamma: Array, beta: Array, y: Array, epsilon: float = 1e-5) -> None:
    """Do a row at a time, without temporary arrays."""
    _check(x, gamma, beta, y)
    if x.size:
        columns = x.shape[-1]
        _layernorm(x.reshape(-1, columns), gamma, beta, y.reshape(-1, columns), epsilon)


@lazy_njit
def _layernorm(x: Array, gamma: Array, beta: Array, y: Array, epsilon: float) -> None:
    rows, columns = x.shape
    for i in range(rows):
        row, out = x[i], y[i]
        total = 0.0
        for k in range(columns):
            total += row[k]
        mean = total / columns
        total = 0.0
        for k in range(columns):
            total += (row[k] - mean) * (row[k] - mean)
        scale = 1 / np.sqrt(total / columns + epsilon)
        for k in range(columns):
            out[k] = (row[k] - mean) * scale * gamma[k] + beta[k]


def _device(x: Array, gamma: Array, beta: Array, y: Array, *_: float, **__: float) -> bool:
    return one_precision(x, gamma, beta, y)


@layernorm.variant("cuda", when=_device)
@layernorm.variant("opencl", when=_device)
def layernorm_device(x: Any, gamma: Any, beta: Any, y: Any, epsilon: float = 1e-5) -> None:
    """Use a group per row."""
    _check(x, gamma, beta, y)
    program = build(LAYERNORM, y)
    columns, lanes = max(1, x.shape[-1]), program.lanes
    items = (x.size // columns * lanes,)
    program.launch("layernorm", items, (lanes,), columns, float(epsilon), x, gamma, beta, y)
