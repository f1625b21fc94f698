"""Sharing a power budget: one setting for each job, the most value in all, never more watts.

Every job offers settings (a power cap, a pair of clocks, a device), each with what it is worth,
such as the job's speed relative to full power, and what it draws.  Choosing one for each is the
multiple-choice knapsack problem.  `allocate` solves it exactly by dominance: jobs are taken one by
one, and of all partial choices only those are kept that no other beats in both watts and value
(G. L. Nemhauser, Z. Ullmann, Discrete dynamic programming and capital allocation, Management
Science 15(9), 1969).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from legato_rt.errors import UsageError

LIMIT = 100_000
"""Partial choices that are kept at most; only beyond that is the result not the best one."""


class Setting(NamedTuple):
    """One way to run a job.

    Attributes
    ----------
    value : float
        What it is worth; values of all jobs are added up.
    watts : float
        What it draws, from zero up.
    """

    value: float
    watts: float


def allocate(jobs: Sequence[Sequence[Setting]], budget_w: float, limit: int = LIMIT) -> list[int]:
    """Choose a setting for each job, the most value in all within a budget.

    Parameters
    ----------
    jobs : sequence of sequences of Setting
    budget_w : float
        The watts of all chosen settings add up to no more.
    limit : int
        How many partial choices to keep.  Where more are worth keeping, only the most valuable one
        of each slice of the budget is, and the result may fall short of the best; its watts never
        exceed the budget.

    Returns
    -------
    list of int
        The index of each job's setting.

    Raises
    ------
    UsageError
        If not even the most frugal settings are within the budget; says what they draw.
    """
    least = [min((setting.watts for setting in job), default=np.inf) for job in jobs]
    if not sum(least) <= budget_w:
        raise UsageError(f"all jobs together draw {sum(least):g} W at least, not {budget_w:g} W")
    # What the jobs to come draw at least is kept free, so that every partial choice can end well.
    reserved = np.append(np.cumsum(least[::-1])[::-1], 0.0)[1:]
    watts, values = np.zeros(1), np.zeros(1)
    steps: list[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]] = []
    for job, rest in zip(jobs, reserved, strict=True):
        draws = watts[:, None] + np.array([setting.watts for setting in job])
        worth = values[:, None] + np.array([setting.value for setting in job])
        kept = _undominated(draws.ravel(), worth.ravel(), budget_w - rest)
        kept = _thinned(draws.ravel()[kept], worth.ravel()[kept], kept, budget_w, limit)
        watts, values = draws.ravel()[kept], worth.ravel()[kept]
        steps.append((kept // len(job), kept % len(job)))
    return _traced(steps, len(watts) - 1)


def _undominated(
    watts: npt.NDArray[np.float64], values: npt.NDArray[np.float64], most_w: float
) -> npt.NDArray[np.intp]:
    """Those within the watts that are worth more than all that draw no more, by watts."""
    order = np.lexsort((-values, watts))
    # The sum of the least watts may be rounded: the most frugal choice is always kept.
    order = order[(watts[order] <= most_w) | (np.arange(len(order)) == 0)]
    before = np.maximum.accumulate(values[order])
    better = np.append(True, before[1:] > before[:-1])
    return np.asarray(order[better])


def _thinned(
    watts: npt.NDArray[np.float64],
    values: npt.NDArray[np.float64],
    kept: npt.NDArray[np.intp],
    budget_w: float,
    limit: int,
) -> npt.NDArray[np.intp]:
    """At most ``limit`` of them: the last, which is worth most, of each slice of watts."""
    if len(kept) <= limit:
        return kept
    slices = np.floor(watts / budget_w * (limit - 2)).astype(np.int64)
    last = np.append(slices[1:] != slices[:-1], True)
    last[0] = True
    return np.asarray(kept[last])


def _traced(steps: list[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]], at: int) -> list[int]:
    chosen = []
    for parents, settings in reversed(steps):
        chosen.append(int(settings[at]))
        at = int(parents[at])
    return chosen[::-1]
