"""The idle gaps of each worker's plan, kept so that the first one that fits is found quickly.

A worker's gaps, in order of time, are cut into blocks of at most `WIDTH`; each block knows its
longest gap, so that a search passes over it when nothing in it is long enough.  With g gaps a
search costs O(log g + g / WIDTH) at worst, and a change O(WIDTH)::

    worker 0   [0,2) [5,6) │ [9,11) [14,15) [20,22) │ … │ free from 40 on
                block 3          block 0
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from legato_rt.order.arrays import Floats, Ints
from legato_rt.order.jit import compiled

WIDTH = 128
ROUNDING = 8 * float(np.finfo(np.float64).eps)


class Gaps(NamedTuple):
    """The gaps of all workers.

    Attributes
    ----------
    starts, ends : array, shape (blocks, WIDTH)
    counts : array of int, shape (blocks,)
        Gaps in each block.
    longest : array, shape (blocks,)
    first : array, shape (workers, blocks)
        Start of each block's first gap, by a worker's blocks in order.
    block : array of int, shape (workers, blocks)
        The worker's blocks in order.
    used : array of int, shape (workers + 1,)
        Blocks of each worker, and of all.
    free_from : array, shape (workers,)
        When nothing is planned any more.
    """

    starts: Floats
    ends: Floats
    counts: Ints
    longest: Floats
    first: Floats
    block: Ints
    used: Ints
    free_from: Floats


@compiled
def new_gaps(tasks: int, free_from: Floats) -> Gaps:
    """No gaps yet, and room for what ``tasks`` tasks can leave."""
    workers = len(free_from)
    # A block is begun only when one is full, half of which it takes over.
    most = workers + 2 * tasks // WIDTH + 2
    gaps = Gaps(
        np.zeros((most, WIDTH)),
        np.zeros((most, WIDTH)),
        np.zeros(most, dtype=np.int64),
        np.zeros(most),
        np.zeros((workers, most)),
        np.zeros((workers, most), dtype=np.int64),
        np.ones(workers + 1, dtype=np.int64),
        free_from.copy(),
    )
    for worker in range(workers):
        gaps.block[worker, 0] = worker
    gaps.used[workers] = workers
    return gaps


@compiled
def find(gaps: Gaps, worker: int, ready: float, duration: float) -> tuple[float, int, int]:
    """The first start from ``ready`` on that a worker has for a task.

    Returns
    -------
    start : float
    position, index : int
        The block, in the worker's order, and the gap in it.  The position is -1 after all that is
        planned, and -2 where nothing has to be taken up.
    """
    if duration <= 0.0:
        return ready, -2, 0
    end = gaps.free_from[worker]
    if ready >= end:
        return ready, -1, 0
    # Lengths of gaps are rounded, the comparison that decides is not.
    least = duration - ROUNDING * (end + duration)
    low, high = 0, gaps.used[worker]
    while low < high:
        middle = (low + high) // 2
        if gaps.first[worker, middle] <= ready:
            low = middle + 1
        else:
            high = middle
    position = max(low - 1, 0)
    index = _from(gaps, gaps.block[worker, position], ready)
    while position < gaps.used[worker]:
        block = gaps.block[worker, position]
        if gaps.longest[block] >= least:
            while index < gaps.counts[block]:
                start = max(gaps.starts[block, index], ready)
                if start + duration <= gaps.ends[block, index]:
                    return start, position, index
                index += 1
        position += 1
        index = 0
    return end, -1, 0


@compiled
def _from(gaps: Gaps, block: int, ready: float) -> int:
    """The last gap of a block that starts no later than ``ready``, or the first one."""
    low, high = 0, gaps.counts[block]
    while low < high:
        middle = (low + high) // 2
        if gaps.starts[block, middle] <= ready:
            low = middle + 1
        else:
            high = middle
    return max(low - 1, 0)


@compiled
def occupy(
    gaps: Gaps, worker: int, position: int, index: int, start: float, duration: float
) -> None:
    """Plan a task where `find` found room for it."""
    finish = start + duration
    if position == -2:
        return
    if position == -1:
        end = gaps.free_from[worker]
        gaps.free_from[worker] = finish
        if start > end:
            last = gaps.used[worker] - 1
            _insert(gaps, worker, last, gaps.counts[gaps.block[worker, last]], end, start)
        return
    block = gaps.block[worker, position]
    end = gaps.ends[block, index]
    if gaps.starts[block, index] < start:
        gaps.ends[block, index] = start
        _measure(gaps, block)
        if finish < end:
            _insert(gaps, worker, position, index + 1, finish, end)
        return
    if finish < end:
        gaps.starts[block, index] = finish
    else:
        _shift(gaps, block, index + 1, -1)
    gaps.first[worker, position] = max(gaps.first[worker, position], gaps.starts[block, 0])
    _measure(gaps, block)


@compiled
def _shift(gaps: Gaps, block: int, index: int, by: int) -> None:
    """Move the gaps of a block from ``index`` on by one place, and count them anew."""
    count = gaps.counts[block]
    if by > 0:
        for at in range(count, index, -1):
            gaps.starts[block, at] = gaps.starts[block, at - 1]
            gaps.ends[block, at] = gaps.ends[block, at - 1]
    else:
        for at in range(index, count):
            gaps.starts[block, at - 1] = gaps.starts[block, at]
            gaps.ends[block, at - 1] = gaps.ends[block, at]
    gaps.counts[block] = count + by


@compiled
def _measure(gaps: Gaps, block: int) -> None:
    longest = 0.0
    for at in range(gaps.counts[block]):
        longest = max(longest, gaps.ends[block, at] - gaps.starts[block, at])
    gaps.longest[block] = longest


@compiled
def _insert(gaps: Gaps, worker: int, position: int, index: int, start: float, end: float) -> None:
    if gaps.counts[gaps.block[worker, position]] == WIDTH:
        _split(gaps, worker, position)
        if index > WIDTH // 2:
            position += 1
            index -= WIDTH // 2
    block = gaps.block[worker, position]
    _shift(gaps, block, index, 1)
    gaps.starts[block, index] = start
    gaps.ends[block, index] = end
    if index == 0:
        gaps.first[worker, position] = start
    gaps.longest[block] = max(gaps.longest[block], end - start)


@compiled
def _split(gaps: Gaps, worker: int, position: int) -> None:
    """Move the later half of a full block to a new one."""
    workers = len(gaps.free_from)
    half = WIDTH // 2
    old, new = gaps.block[worker, position], gaps.used[workers]
    gaps.used[workers] += 1
    for at in range(gaps.used[worker], position + 1, -1):
        gaps.block[worker, at] = gaps.block[worker, at - 1]
        gaps.first[worker, at] = gaps.first[worker, at - 1]
    gaps.used[worker] += 1
    for at in range(half):
        gaps.starts[new, at] = gaps.starts[old, half + at]
        gaps.ends[new, at] = gaps.ends[old, half + at]
    gaps.counts[old] = gaps.counts[new] = half
    gaps.block[worker, position + 1] = new
    gaps.first[worker, position + 1] = gaps.starts[new, 0]
    _measure(gaps, old)
    _measure(gaps, new)
