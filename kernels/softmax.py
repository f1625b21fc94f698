"""Softmax over the last axis, y = exp(x) / Σ exp(x).

NumPy's exp is vectorised and works in place, so the NumPy body is also the fast one on the CPU.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from legato_rt.access import In, Out
from legato_rt.kernels.device_launch import build
from legato_rt.kernels.device_source import Source, one_precision
from legato_rt.task import task

Array: TypeAlias = npt.NDArray[Any]

SOFTMAX = Source("softmax", lanes=64)


@task(flops=lambda x, y: 4 * x.size, rtol=1e-5)
def softmax(x: In[Array], y: Out[Array]) -> None:
    """Write the softmax of each row of `x` into `y`.

    The largest element of a row is taken off first, so that no exponential overflows.

    Parameters
    ----------
    x, y : array of float, of one shape (..., K)

    Raises
    ------
    ValueError
        If the shapes differ.
    """
    _check(x, y)
    if x.size:
        np.subtract(x, x.max(axis=-1, keepdims=True), out=y)
        np.exp(y, out=y)
        np.divide(y, y.sum(axis=-1, keepdims=True), out=y)


def _check(x: Any, y: Any) -> None:
    if x.ndim == 0 or x.shape != y.shape:
        raise ValueError(f"x {x.shape} and y {y.shape} are not rows of one shape")


def _device(x: Array, y: Array) -> bool:
    return one_precision(x, y)


@softmax.variant("cuda", when=_device)
@softmax.variant("opencl", when=_device)
def softmax_device(x: Any, y: Any) -> None:
    """Use a group per row."""
    _check(x, y)
    program = build(SOFTMAX, y)
    columns, lanes = max(1, x.shape[-1]), program.lanes
    program.launch("softmax", (x.size // columns * lanes,), (lanes,), columns, x, y)
