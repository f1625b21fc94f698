"""How many elements fall into each of some bins of equal width."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from legato_rt.access import In, Out
from legato_rt.kernels.device_launch import build
from legato_rt.kernels.device_source import REAL, Source
from legato_rt.kernels.jit import lazy_njit
from legato_rt.task import task

Array: TypeAlias = npt.NDArray[Any]

HISTOGRAM = Source("histogram", lanes=128, BINS=2048)
BINS = int(HISTOGRAM.constants["BINS"])
GROUP = 64
GROUPS = 64
SEGMENT = 4096
"""Elements that a group is worth starting for."""
PARTS = 1 << 22
"""Upper bound on the counters of all groups together, unless one group's are more."""


@task(flops=lambda x, counts, low, high: 2 * x.size, rtol=0.0)
def histogram(x: In[Array], counts: Out[Array], low: float, high: float) -> None:
    """Write into counts[b] how many elements of `x` lie in bin b.

    The bins divide the range from `low` to `high`, both included.  What lies outside, and what is
    NaN, is not counted.  An element's bin is computed in the precision of `x`, as
    (x - low)·(bins / (high - low)) rounded down; so all variants count alike.

    Parameters
    ----------
    x : array of float, of any shape
    counts : array of int64, (B,)
    low, high : float

    Raises
    ------
    ValueError
        If there is no bin, the range is empty or not finite, or counts are of another type.
    """
    low, high, scale = _check(x, counts, low, high)
    inside = x[(x >= low) & (x <= high)]
    bins = np.minimum(((inside - low) * scale).astype(np.int64), counts.size - 1)
    counts[...] = np.bincount(bins, minlength=counts.size)


def _check(x: Any, counts: Any, low: float, high: float) -> tuple[Any, Any, Any]:
    """Return the edges and the bins per unit in the precision of `x`."""
    if counts.ndim != 1 or counts.size == 0 or counts.dtype != np.int64:
        raise ValueError(f"counts {counts.shape} of {counts.dtype} are no vector of int64")
    real = x.dtype.type
    low, high = real(low), real(high)
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise ValueError(f"the range from {low} to {high} cannot be divided into bins")
    scale = real(counts.size / (float(high) - float(low)))
    if not np.isfinite(scale):
        raise ValueError(f"{counts.size} bins from {low} to {high} are too narrow for {real}")
    return low, high, scale


def _contiguous(x: Array, counts: Array, low: float, high: float) -> bool:
    return x.dtype in REAL and x.flags.c_contiguous


@histogram.variant("cpu", when=_contiguous)
def histogram_numba(x: Array, counts: Array, low: float, high: float) -> None:
    """Count in one pass."""
    _histogram(x.reshape(-1), counts, *_check(x, counts, low, high))


@lazy_njit
def _histogram(x: Array, counts: Array, low: float, high: float, scale: float) -> None:
    counts[:] = 0
    last = counts.size - 1
    for value in x:
        if value >= low and value <= high:
            counts[min(int((value - low) * scale), last)] += 1


def _device(x: Array, counts: Array, low: float, high: float) -> bool:
    return x.dtype in REAL


@histogram.variant("cuda", when=_device)
@histogram.variant("opencl", when=_device)
def histogram_device(x: Any, counts: Any, low: float, high: float) -> None:
    """Count a segment in each group, then add the groups' counts."""
    edges = _check(x, counts, low, high)
    bins = counts.size
    program = build(HISTOGRAM, x)
    groups = max(1, min(GROUPS, -(-x.size // SEGMENT), PARTS // bins))
    length = max(1, -(-x.size // groups))
    groups = -(-x.size // length)
    parts = program.scratch(max(1, groups * bins), np.uint32)
    lanes = program.lanes
    items = groups * lanes, -(-bins // BINS)
    program.launch("histogram_parts", items, (lanes, 1), x.size, length, bins, *edges, x, parts)
    program.launch("histogram_finish", (bins,), (GROUP,), groups, bins, parts, counts)
