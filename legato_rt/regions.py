"""Which bytes a view touches, and whether two views touch the same ones.

A strided view is brought to a canonical form: a run of ``width`` contiguous bytes, repeated along
``dims``.  Transposes, reshapes, negative strides, broadcast axes and unit axes of one and the same
set of bytes all give one form, so most questions are answered by comparing forms::

    a = zeros((4, 6), uint8)          a[1:3, 2:5]    . . . . . .
                                                     . . x x x .     width 3, dims ((2, 6),)
                                                     . . x x x .
                                                     . . . . . .

Overlap of two forms is a bounded linear Diophantine problem, which NumPy solves exactly
(`numpy.shares_memory`).  Splitting needs the bytes themselves, as sorted runs.  Both are bounded:
`MAX_WORK` candidate solutions, `MAX_RUNS` runs a view.  Beyond the bounds the answer is "may
overlap", which orders two tasks that might be independent, and never the other way round.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

MAX_WORK = 10_000
MAX_RUNS = 1 << 18

Ints = npt.NDArray[np.int64]
# NumPy's own hints know only two of the bounds that it takes.
shares_memory: Callable[[Any, Any, int], bool] = cast(Any, np.shares_memory)


class Layout(NamedTuple):
    """``width`` bytes at ``start``, repeated ``n`` times every ``stride`` bytes for each dim."""

    start: int
    width: int
    dims: tuple[tuple[int, int], ...]

    @property
    def stop(self) -> int:
        """Address after the last byte."""
        return self.start + self.width + sum((n - 1) * stride for n, stride in self.dims)


def canonical(
    start: int, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int
) -> Layout | None:
    """Canonical form of a strided view; `None` if it holds no byte."""
    if itemsize == 0 or 0 in shape:
        return None
    axes = []
    for n, stride in zip(shape, strides, strict=True):
        if n == 1 or stride == 0:
            continue
        if stride < 0:
            start += stride * (n - 1)
            stride = -stride
        axes.append((stride, n))
    axes.sort()
    width = itemsize
    dims: list[tuple[int, int]] = []
    for stride, n in axes:
        if not dims and stride <= width:
            width += stride * (n - 1)
        elif dims and stride == dims[-1][0] * dims[-1][1]:
            dims[-1] = (dims[-1][0] * n, dims[-1][1])
        else:
            dims.append((n, stride))
    return Layout(start, width, tuple(dims))


class Runs(NamedTuple):
    """Sorted, disjoint, non-adjacent byte intervals ``[starts[i], stops[i])``."""

    starts: Ints
    stops: Ints

    def __bool__(self) -> bool:
        return len(self.starts) > 0

    def size(self) -> int:
        """How many bytes."""
        return int((self.stops - self.starts).sum())

    def intersection(self, other: Runs) -> Runs:
        """Bytes in both."""
        first = np.searchsorted(other.stops, self.starts, "right")
        last = np.searchsorted(other.starts, self.stops, "left")
        counts = np.maximum(last - first, 0)
        mine = np.repeat(np.arange(len(counts)), counts)
        offset = np.arange(len(mine)) - np.repeat(np.cumsum(counts) - counts, counts)
        theirs = first[mine] + offset
        return Runs(
            np.maximum(self.starts[mine], other.starts[theirs]),
            np.minimum(self.stops[mine], other.stops[theirs]),
        )

    def difference(self, other: Runs) -> Runs:
        """Bytes in this one and not in the other."""
        if not other:
            return self
        low = min(int(self.starts[0]), int(other.starts[0])) - 1
        high = max(int(self.stops[-1]), int(other.stops[-1])) + 1
        gaps = Runs(np.concatenate(([low], other.stops)), np.concatenate((other.starts, [high])))
        return self.intersection(gaps)


class Extent:
    """A set of bytes: a layout, or the runs that are left of one."""

    __slots__ = ("_probe", "_runs", "layout", "start", "stop")

    def __init__(self, layout: Layout | None = None, runs: Runs | None = None) -> None:
        self.layout = layout
        self._runs = runs
        self._probe: npt.NDArray[Any] | None = None
        if layout is not None:
            self.start, self.stop = layout.start, layout.stop
        elif runs is not None:
            self.start, self.stop = int(runs.starts[0]), int(runs.stops[-1])
        else:
            raise ValueError("an extent needs a layout or runs")

    @property
    def solid(self) -> bool:
        """Whether this is one contiguous stretch."""
        if self.layout is not None:
            return not self.layout.dims
        return self._runs is not None and len(self._runs.starts) == 1

    def runs(self) -> Runs | None:
        """The bytes as runs, or `None` if they are more than `MAX_RUNS`."""
        if self._runs is not None or self.layout is None:
            return self._runs
        if math.prod(n for n, _ in self.layout.dims) > MAX_RUNS:
            return None
        runs = _runs_of(self.layout)
        if len(runs.starts) <= 64:
            self._runs = runs
        return runs

    def size(self) -> int | None:
        """How many bytes, or `None` if that is too hard to tell."""
        if self.layout is not None:
            reach, count = self.layout.width, self.layout.width
            for n, stride in self.layout.dims:
                if stride <= reach:
                    break
                reach += (n - 1) * stride
                count *= n
            else:
                return count
        runs = self.runs()
        return None if runs is None else runs.size()

    def overlaps(self, other: Extent) -> bool | None:
        """Whether the two share a byte; `None` if that is too hard to tell."""
        if self.start >= other.stop or other.start >= self.stop:
            return False
        if self.layout is not None and other.layout is not None:
            try:
                return bool(shares_memory(self._as_array(), other._as_array(), MAX_WORK))
            except np.exceptions.TooHardError:
                pass
        mine, theirs = self.runs(), other.runs()
        if mine is None or theirs is None:
            return None
        return bool(mine.intersection(theirs))

    def split(self, other: Extent) -> tuple[Extent | None, Extent | None] | None:
        """(this ∩ other, this minus other), or `None` if that is too hard to tell."""
        if other.solid and other.start <= self.start and self.stop <= other.stop:
            return self, None
        if self.layout is not None and self.layout == other.layout:
            return self, None
        mine, theirs = self.runs(), other.runs()
        if mine is None or theirs is None:
            return None
        common, rest = mine.intersection(theirs), mine.difference(theirs)
        if not rest:
            return self, None
        if not common:
            return None, self
        inside = other if common.size() == theirs.size() else Extent(runs=common)
        return inside, Extent(runs=rest)

    def _as_array(self) -> npt.NDArray[Any]:
        """An array over these addresses that is only ever asked where it lies."""
        if self._probe is None:
            assert self.layout is not None
            self._probe = np.asarray(_Interface(self.layout))
        return self._probe


class _Interface:
    def __init__(self, layout: Layout) -> None:
        self.__array_interface__ = {
            "version": 3,
            "typestr": "|u1",
            "data": (layout.start, False),
            "shape": (*(n for n, _ in layout.dims), layout.width),
            "strides": (*(stride for _, stride in layout.dims), 1),
        }


def _runs_of(layout: Layout) -> Runs:
    starts = np.array([layout.start], np.int64)
    nested = True
    reach = layout.width
    for n, stride in layout.dims:
        nested = nested and stride > reach
        reach += (n - 1) * stride
        steps = np.arange(n, dtype=np.int64) * stride
        starts = (steps[:, None] + starts[None, :]).ravel()
    if nested:
        return Runs(starts, starts + layout.width)
    starts = np.unique(starts)
    # Runs that touch or overlap (only views made by as_strided do that) are joined.
    first = np.concatenate(([True], np.diff(starts) > layout.width))
    last = np.concatenate((first[1:], [True]))
    return Runs(starts[first], starts[last] + layout.width)


class Grid:
    """Which of many extents may overlap a new one, answered for all of them at once.

    For every period of the array that owns the memory (its strides: a plane, a row) each extent has
    an interval within the period; extents that overlap must overlap in all of them.  So a tile of a
    matrix is compared with the tiles of its row and column only.
    """

    __slots__ = ("_bounds", "_count", "_origin", "_periods")

    def __init__(self, origin: int, periods: tuple[int, ...]) -> None:
        self._origin = origin
        self._periods = periods
        self._count = 0
        self._bounds = np.empty((2, 1 + len(periods), 8), np.int64)

    def append(self, extent: Extent) -> None:
        """Add an extent; its index is the number of extents before it."""
        if self._count == self._bounds.shape[2]:
            self._bounds = np.concatenate((self._bounds, np.empty_like(self._bounds)), axis=2)
        self._count += 1
        self.replace(self._count - 1, extent)

    def replace(self, index: int, extent: Extent) -> None:
        """Put another extent in the place of one."""
        self._bounds[:, :, index] = self._intervals(extent)

    def near(self, extent: Extent) -> list[int]:
        """Indices of all extents that may overlap, in order."""
        low, high = self._bounds[:, :, : self._count]
        mine = self._intervals(extent)
        hit = ((low < mine[1][:, None]) & (high > mine[0][:, None])).all(axis=0)
        return [int(i) for i in np.flatnonzero(hit)]

    def _intervals(self, extent: Extent) -> Ints:
        bounds = np.empty((2, 1 + len(self._periods)), np.int64)
        bounds[:, 0] = extent.start, extent.stop
        for level, period in enumerate(self._periods, 1):
            bounds[:, level] = _within(extent.layout, self._origin, period)
        return bounds


def _within(layout: Layout | None, origin: int, period: int) -> tuple[int, int]:
    """Interval of a layout modulo a period; the whole period where it is not one interval."""
    if layout is None:
        return 0, period
    span = layout.width
    for n, stride in layout.dims:
        if stride < period:
            span += (n - 1) * stride
        elif stride % period:
            return 0, period
    first = (layout.start - origin) % period
    return (first, first + span) if first + span <= period else (0, period)
