"""The compiled game behind the combined bound; `bounds` says what it plays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from legato_rt.order.arrays import Floats, Ints
from legato_rt.order.jit import compiled


class Game(NamedTuple):
    """What is played on.

    Attributes
    ----------
    order, start, successors : array of int
        The graph.
    seconds : array, shape (n, classes)
        Zero where a class cannot run a task.
    runs : array, shape (n, classes)
        Infinite there, else zero.
    workers : array, shape (classes,)
    heads, tails : array
        Lengths that windows may begin and end with, ascending.
    head, tail : array of int, shape (n,)
        For each task the last of them that it reaches.
    """

    order: Ints
    start: Ints
    successors: Ints
    seconds: Floats
    runs: Floats
    workers: Floats
    heads: Floats
    tails: Floats
    head: Ints
    tail: Ints


@compiled
def shares(total: Floats, scale: Floats, rate: float, share: Floats) -> None:
    """How much of each task each class does: the less, the more the opponent charged for it."""
    tasks, classes = total.shape
    for task in range(tasks):
        least = total[task].min()
        sum_ = 0.0
        for c in range(classes):
            share[task, c] = np.exp(-rate * (total[task, c] - least) / scale[task])
            sum_ += share[task, c]
        for c in range(classes):
            share[task, c] /= sum_


@compiled
def longest(
    order: Ints, start: Ints, successors: Ints, took: Floats, length: Floats, following: Ints
) -> int:
    """Where a longest path begins; fills in each task's length to the end and who follows."""
    best, first = -1.0, -1
    for at in range(len(order) - 1, -1, -1):
        task = order[at]
        after = 0.0
        following[task] = -1
        for edge in range(start[task], start[task + 1]):
            other = successors[edge]
            if length[other] > after:
                after = length[other]
                following[task] = other
        length[task] = took[task] + after
        if length[task] > best:
            best, first = length[task], task
    return first


@compiled
def worst_window(
    work: Floats, head: Ints, tail: Ints, heads: Floats, tails: Floats, grid: Floats
) -> tuple[float, int, int]:
    """The largest of: time before, work of all tasks that lie between, time after."""
    grid[:] = 0.0
    for task in range(len(work)):
        grid[head[task], tail[task]] += work[task]
    best, row, column = 0.0, 0, 0
    for h in range(len(heads) - 1, -1, -1):
        sum_ = 0.0
        for t in range(len(tails) - 1, -1, -1):
            sum_ += grid[h, t]
            grid[h, t] = sum_ + grid[h + 1, t]
            window = heads[h] + grid[h, t] + tails[t]
            if grid[h, t] > 0.0 and window > best:
                best, row, column = window, h, t
    return best, row, column


@compiled
def answer(
    game: Game, share: Floats, total: Floats, took: Floats, work: Floats, grid: Floats
) -> float:
    """The opponent charges for the largest path or window, and says what of it is fixed."""
    classes = len(game.workers)
    for task in range(len(took)):
        took[task] = 0.0
        for c in range(classes):
            took[task] += share[task, c] * game.seconds[task, c]
            work[c, task] = share[task, c] * game.seconds[task, c] / game.workers[c]
    length, following = np.empty(len(took)), np.empty(len(took), dtype=np.int64)
    first = longest(game.order, game.start, game.successors, took, length, following)
    most, where, row, column = length[first], -1, 0, 0
    for c in range(classes):
        window, h, t = worst_window(work[c], game.head, game.tail, game.heads, game.tails, grid)
        if window > most:
            most, where, row, column = window, c, h, t
    if where < 0:
        while first >= 0:
            total[first] += game.seconds[first]
            first = following[first]
        return 0.0
    for task in range(len(took)):
        if game.head[task] >= row and game.tail[task] >= column:
            total[task, where] += game.seconds[task, where] / game.workers[where]
    return float(game.heads[row] + game.tails[column])


@compiled
def play(game: Game, rounds: int, rate: float) -> float:
    """Play and return the best lower bound seen."""
    tasks, classes = game.seconds.shape
    total, share = game.runs.copy(), np.empty((tasks, classes))
    took, work = np.empty(tasks), np.empty((classes, tasks))
    grid = np.empty((len(game.heads) + 1, len(game.tails) + 1))
    scale = np.empty(tasks)
    for task in range(tasks):
        times = game.seconds[task]
        scale[task] = max((times + game.runs[task]).min(), 1e-6 * times.max(), 1e-300)
    best, fixed = 0.0, 0.0
    for turn in range(1, rounds + 1):
        shares(total, scale, rate / np.sqrt(turn), share)
        fixed += answer(game, share, total, took, work, grid)
        bound = fixed
        for task in range(tasks):
            bound += total[task].min()
        best = max(best, bound / turn)
    return best
