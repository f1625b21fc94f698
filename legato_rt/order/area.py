"""The area bound: no schedule is shorter than the work, spread out at best over the workers.

With n_k tasks of kind k, which take t_kc on one of the m_c workers of class c, it is the value of
the linear programme ``min T: sum_c x_kc = n_k, sum_k x_kc t_kc <= m_c T, x >= 0``.  Its dual is
small: ``max g(p) = sum_k n_k min_c p_c t_kc`` over prices ``p >= 0, sum_c m_c p_c = 1``, and every
such p gives a lower bound.  One class needs no search; for two, the best price makes some kind
indifferent between them; for more, cutting planes close in on it (J. E. Kelley, The cutting-plane
method for solving convex programs, 1960).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from legato_rt.errors import UsageError
from legato_rt.order.arrays import Floats
from legato_rt.order.ranks import seconds_of

MAX_CUTS = 1000
GAP = 1e-12
MAX_PIVOTS = 10_000
ROUNDING = 1e-12


def classes(seconds: Floats) -> tuple[Floats, Floats]:
    """Put workers with equal times together.

    Returns
    -------
    seconds : array, shape (n, classes)
    workers : array, shape (classes,)
        How many there are of each class.
    """
    columns, counts = np.unique(seconds, axis=1, return_counts=True)
    return np.ascontiguousarray(columns), counts.astype(np.float64)


def area_bound(
    seconds: npt.ArrayLike,
    workers: npt.ArrayLike | None = None,
    counts: npt.ArrayLike | None = None,
) -> float:
    """Lower bound in seconds on any schedule of independent tasks.

    Parameters
    ----------
    seconds : array_like, shape (kinds, classes)
        Time of a task of each kind on a worker of each class; infinite where it cannot run.
    workers : array_like, shape (classes,), optional
        Workers of each class; one by default.
    counts : array_like, shape (kinds,), optional
        Tasks of each kind; one by default.
    """
    table = np.asarray(seconds, dtype=np.float64)
    table = seconds_of(table, len(table))
    many = np.ones(table.shape[1]) if workers is None else np.asarray(workers, dtype=np.float64)
    weight = np.ones(len(table)) if counts is None else np.asarray(counts, dtype=np.float64)
    if many.shape != table.shape[1:] or not (many > 0).all():
        raise UsageError("a number of workers above zero is needed for each class")
    if weight.shape != table.shape[:1] or not (weight >= 0).all():
        raise UsageError("a number of tasks from zero up is needed for each kind")
    return max((value(table, weight, price) for price in prices(table, many, weight)), default=0.0)


def prices(seconds: Floats, workers: Floats, counts: Floats) -> Floats:
    """Prices of the classes among which those are that give the area bound, one set a row."""
    if seconds.shape[1] == 1:
        return 1.0 / workers[None, :]
    if seconds.shape[1] == 2:
        return _indifferent(seconds, workers)
    return _cut(seconds, workers, counts)[None, :]


def value(seconds: Floats, counts: Floats, price: Floats) -> float:
    """What prices give as a lower bound."""
    return (
        float(counts @ _costs(seconds, price).min(axis=1, initial=np.inf)) if len(counts) else 0.0
    )


def _costs(seconds: Floats, price: Floats) -> Floats:
    runs = np.isfinite(seconds)
    return np.where(runs, np.where(runs, seconds, 0.0) * price, np.inf)


def _indifferent(seconds: Floats, workers: Floats) -> Floats:
    """Prices of two classes at which some kind costs the same on both, and the extreme ones."""
    both = seconds[np.isfinite(seconds).all(axis=1) & (seconds > 0).all(axis=1)]
    pairs = np.vstack([both[:, ::-1], np.eye(2)])
    pairs = np.unique(pairs / (pairs @ workers)[:, None], axis=0)
    return pairs


def _cut(seconds: Floats, workers: Floats, counts: Floats) -> Floats:
    """The best prices for several classes, by cutting planes."""
    price = 1.0 / (workers * len(workers))
    best, best_value = price, -1.0
    cuts: list[Floats] = []
    rows = np.arange(len(counts))
    for _ in range(MAX_CUTS):
        costs = _costs(seconds, price)
        chosen = costs.argmin(axis=1)
        reached = float(counts @ costs.min(axis=1))
        if reached > best_value:
            best, best_value = price, reached
        # What each class would have to do with this assignment bounds every price's value.
        work = np.bincount(chosen, counts * seconds[rows, chosen], len(workers)) / workers
        if not work.any():
            break
        cuts.append(work)
        bound, share = _master(np.array(cuts))
        price = share / workers
        if bound <= best_value * (1 + GAP):
            break
    return best


def _master(cuts: Floats) -> tuple[float, Floats]:
    """``max_p min_j (cuts @ p)_j`` over shares p >= 0 that add up to one: a matrix game.

    For a positive value it is the reciprocal of the programme ``max sum y: cuts.T @ y <= 1``.
    """
    columns = np.asarray(cuts.T / cuts.max())
    solution, shadow = simplex(columns, np.ones(len(columns)), np.ones(len(cuts)))
    total = float(solution.sum())
    return float(cuts.max()) / total, shadow / shadow.sum()


def simplex(matrix: Floats, limits: Floats, gain: Floats) -> tuple[Floats, Floats]:
    """Solve ``max gain @ x: matrix @ x <= limits, x >= 0``, limits above zero, by Bland's rule.

    Returns
    -------
    solution : array, shape (columns,)
    shadow : array, shape (rows,)
        Prices of the limits.

    Raises
    ------
    UsageError
        If the gain is unbounded.
    """
    rows, columns = matrix.shape
    tableau = np.hstack([matrix, np.eye(rows), limits[:, None]]).astype(np.float64)
    costs = np.concatenate([-gain, np.zeros(rows + 1)])
    basis = np.arange(columns, columns + rows)
    for _ in range(MAX_PIVOTS):
        entering = np.flatnonzero(costs[:-1] < -ROUNDING)
        if not len(entering):
            break
        column = entering[0]
        usable = np.flatnonzero(tableau[:, column] > ROUNDING)
        if not usable.size:
            raise UsageError("the linear programme is unbounded")
        ratios = tableau[usable, -1] / tableau[usable, column]
        # Rounding may leave the least ratio a little below zero.
        ties = usable[ratios <= ratios.min() + ROUNDING * abs(ratios.min())]
        row = ties[np.argmin(basis[ties])]
        tableau[row] /= tableau[row, column]
        others = np.arange(rows) != row
        tableau[others] -= np.outer(tableau[others, column], tableau[row])
        costs -= costs[column] * tableau[row]
        basis[row] = column
    solution = np.zeros(columns + rows)
    solution[basis] = tableau[:, -1]
    return solution[:columns], np.maximum(costs[columns:-1], 0.0)
