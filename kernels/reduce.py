"""Sum, least or largest of all elements of an array."""

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

OPERATIONS = {"sum": 0, "min": 1, "max": 2}
REDUCE = Source("reduce", lanes=256, OPERATION=0)
GROUPS = 256
SEGMENT = 4096
"""Elements that a group is worth starting for."""


@task(flops=lambda x, out, operation="sum": x.size, rtol=1e-5)
def reduce(x: In[Array], out: Out[Array], operation: str = "sum") -> None:
    """Write the sum, the least or the largest of the elements of `x` into `out`.

    Sums are added up in double precision, so that they do not depend on the order.

    Parameters
    ----------
    x : array of float, of any shape
        A NaN counts as the least and as the largest.
    out : array of float, with one element
    operation : str
        ``"sum"``, ``"min"`` or ``"max"``.

    Raises
    ------
    ValueError
        If the operation is another, `out` has not one element, or nothing has no least or largest.
    """
    _check(x, out, operation)
    if operation == "sum":
        out[...] = x.sum(dtype=np.float64)
    else:
        out[...] = x.min() if operation == "min" else x.max()


def _check(x: Any, out: Any, operation: str) -> None:
    if operation not in OPERATIONS:
        raise ValueError(f"operation is one of {', '.join(OPERATIONS)}, not {operation!r}")
    if out.size != 1:
        raise ValueError(f"out has the shape {out.shape} and not one element")
    if x.size == 0 and operation != "sum":
        raise ValueError(f"an empty array has no {operation}")


def _sums(x: Array, out: Array, operation: str = "sum") -> bool:
    return operation == "sum" and one_precision(x, out) and x.flags.c_contiguous


@reduce.variant("cpu", when=_sums)
def reduce_numba(x: Array, out: Array, operation: str = "sum") -> None:
    """Add without a copy in double precision."""
    _check(x, out, operation)
    sums = np.zeros(CHAINS, np.float64)
    _sum(x.reshape(-1), sums)
    out[...] = sums.sum()


CHAINS = 32
"""Sums that run side by side: an addition need not wait for the one before it."""


@lazy_njit
def _sum(x: Array, sums: Array) -> None:
    chains = sums.size
    whole = x.size // chains * chains
    for i in range(0, whole, chains):
        some = x[i : i + chains]
        for j in range(chains):
            sums[j] += some[j]
    for i in range(whole, x.size):
        sums[i - whole] += x[i]


def _device(x: Array, out: Array, *_: str, **__: str) -> bool:
    return one_precision(x, out)


@reduce.variant("cuda", when=_device)
@reduce.variant("opencl", when=_device)
def reduce_device(x: Any, out: Any, operation: str = "sum") -> None:
    """Reduce a segment in each group, then what the groups found."""
    _check(x, out, operation)
    program = build(REDUCE, out, OPERATION=OPERATIONS[operation])
    length = max(SEGMENT, -(-x.size // GROUPS))
    groups = -(-x.size // length)
    parts = program.scratch(max(1, groups), np.float64)
    lanes = program.lanes
    program.launch("reduce_parts", (groups * lanes,), (lanes,), x.size, length, x, parts)
    program.launch("reduce_finish", (1,), (1,), groups, parts, out)
