"""Lower bounds on the makespan of a graph on heterogeneous workers.

Three, in seconds, without transfers:

* the **area** bound, see `area`;
* the longest **path**, each task at its fastest;
* the two **combined**.  Let each task be shared out among the classes of workers as one likes.
  Whatever the shares x, no schedule that follows them is shorter than the longest path with the
  times ``sum_c x_ic t_ic``, nor than any *window*: what must pass before any task of a set can
  start, then the set's work on one class over its workers, then what must pass after.  A set is
  all tasks with a head (fastest path to the task) and a tail (fastest path from its end) of at
  least some length each, as in E. B. Fernandez, B. Bussell, Bounds on the number of processors and
  time for multiprocessor optimal schedules, IEEE Trans. Computers, 1973.  The least, over all
  shares, of the largest of these is a linear programme; its relaxation without windows is the
  mixed bound of E. Agullo et al., Bridging the gap between performance and bounds of Cholesky
  factorization on heterogeneous platforms, HCW 2015.

  It is solved as a game: the shares learn by multiplicative weights, the opponent answers with the
  largest path or window, and the mean of its answers is, at any time, a valid lower bound
  (Y. Freund, R. E. Schapire, Adaptive game playing using multiplicative weights, 1999).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from legato_rt.order.area import area_bound, classes
from legato_rt.order.arrays import Floats, Ints
from legato_rt.order.dag import Dag
from legato_rt.order.ranks import downward_rank, seconds_of, upward_rank

ROUNDS = 5000
RATE = 10.0
WINDOWS = 64
ROUNDING = 1e-10
"""Relative; the mean of many answers is rounded, a bound must not be above what it bounds."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Lower bounds on a makespan, in seconds.

    Attributes
    ----------
    area_s, path_s : float
        What the work, and what the order of tasks asks for.
    combined_s : float
        Both together; at least the larger of the two.
    """

    area_s: float
    path_s: float
    combined_s: float

    @property
    def simple_s(self) -> float:
        """The larger of area and path."""
        return max(self.area_s, self.path_s)


def lower_bounds(dag: Dag, seconds: npt.ArrayLike, rounds: int = ROUNDS) -> Bounds:
    """Bound the makespan of a graph from below.

    Parameters
    ----------
    dag : Dag
    seconds : array_like, shape (n, workers)
        Time of each task on each worker; infinite where it cannot run.
    rounds : int
        Of the game for the combined bound, each of which takes time in proportion to the edges.
        More of them make it tighter; with none it is the larger of the other two.
    """
    if not len(dag):
        return Bounds(0.0, 0.0, 0.0)
    table, workers = classes(seconds_of(seconds, len(dag)))
    kinds, counts = np.unique(table, axis=0, return_counts=True)
    area_s = area_bound(kinds, workers, counts)
    fastest = table.min(axis=1)
    rank = upward_rank(dag, fastest)
    path_s = float(rank.max())
    combined_s = max(area_s, path_s)
    if rounds:
        combined_s = max(combined_s, _combined(dag, table, workers, rank - fastest, rounds))
    return Bounds(area_s, path_s, combined_s)


def _combined(dag: Dag, table: Floats, workers: Floats, tail: Floats, rounds: int) -> float:
    from legato_rt.order.bound_kernel import Game, play

    heads, head = _steps(downward_rank(dag, table.min(axis=1)))
    tails, after = _steps(tail)
    runs = np.isfinite(table)
    seconds, nowhere = np.where(runs, table, 0.0), np.where(runs, 0.0, np.inf)
    graph = dag.order, dag.successor_start, dag.successors
    game = Game(*graph, seconds, nowhere, workers, heads, tails, head, after)
    return float(play(game, rounds, RATE)) * (1 - ROUNDING)


def _steps(lengths: Floats) -> tuple[Floats, Ints]:
    """At most `WINDOWS` of the lengths, and for each task the last that it reaches."""
    rounded = np.maximum(lengths, 0.0)
    steps = np.unique(rounded)
    if len(steps) > WINDOWS:
        steps = np.unique(steps[np.linspace(0, len(steps) - 1, WINDOWS).astype(np.intp)])
    return steps, np.searchsorted(steps, rounded, side="right") - 1
