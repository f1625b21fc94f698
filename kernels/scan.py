"""Prefix sums of a vector."""

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

SCAN = Source("scan", lanes=256)
GROUPS = 256
SEGMENT = 4096
"""Elements that a group is worth starting for."""


@task(flops=lambda x, y, exclusive=False: x.size, rtol=1e-5)
def scan(x: In[Array], y: Out[Array], exclusive: bool = False) -> None:
    """Write into y[i] the sum of x[0] to x[i], or to x[i - 1] if it is `exclusive`.

    Sums are added up in double precision, so that they do not depend on the order.

    Parameters
    ----------
    x, y : array of float, (N,)
    exclusive : bool

    Raises
    ------
    ValueError
        If they are not vectors of one length.
    """
    _check(x, y)
    if exclusive:
        y[:1] = 0
        y[1:] = np.cumsum(x[:-1], dtype=np.float64)
    else:
        y[...] = np.cumsum(x, dtype=np.float64)


def _check(x: Any, y: Any) -> None:
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"x {x.shape} and y {y.shape} are not vectors of one length")


def _fits(x: Array, y: Array, *_: bool, **__: bool) -> bool:
    return one_precision(x, y)


@scan.variant("cpu", when=_fits)
def scan_numba(x: Array, y: Array, exclusive: bool = False) -> None:
    """Add in one pass, without an array in double precision."""
    _check(x, y)
    _scan(x, y, exclusive)


@lazy_njit
def _scan(x: Array, y: Array, exclusive: bool) -> None:
    total = 0.0
    for i in range(x.size):
        value = x[i]
        if exclusive:
            y[i] = total
        total += value
        if not exclusive:
            y[i] = total


@scan.variant("cuda", when=_fits)
@scan.variant("opencl", when=_fits)
def scan_device(x: Any, y: Any, exclusive: bool = False) -> None:
    """Scan a segment in each group, once it is known what goes before it."""
    _check(x, y)
    program = build(SCAN, y)
    length = max(SEGMENT, -(-x.size // GROUPS))
    groups = -(-x.size // length)
    sums = program.scratch(max(1, groups), np.float64)
    lanes = program.lanes
    items, group = (groups * lanes,), (lanes,)
    program.launch("scan_sums", items, group, x.size, length, x, sums)
    program.launch("scan_offsets", (min(1, groups),), (1,), groups, sums)
    program.launch("scan_segments", items, group, x.size, length, exclusive, x, sums, y)
