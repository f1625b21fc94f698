"""The best of many schedules of a known graph.

Members, each simulated with the same times:

* HEFT by mean and by fastest times;
* each task to where it is done first, in the order in which tasks become ready;
* the dispatch rule (`dispatch`), with the best numbers that a search finds (`rule_search`);
* the best of these, improved task by task (`annealing`).

Best is the least makespan, or the least cost of a `Goal` that counts energy.  What it spends is
counted in looks at a task, not in seconds, so that the same call gives the same schedule on any
machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from legato_rt.order.arrays import Floats, Ints
from legato_rt.order.bounds import lower_bounds
from legato_rt.order.dag import Dag
from legato_rt.order.goal import Goal
from legato_rt.order.heft import Links, Schedule, heft
from legato_rt.order.ranks import seconds_of
from legato_rt.order.shop import Shop, by_speed, make_shop

PER_TASK, MOST = 500_000, 400_000_000
"""Looks at a task that a plan takes by default, for each task and at most; about ten seconds."""

KINDS = 6
SEARCHES = 2
TEMPERATURES = (3e-5, 3e-4)


def portfolio(
    dag: Dag,
    seconds: npt.ArrayLike,
    *,
    kinds: Sequence[str] | None = None,
    links: Links | None = None,
    effort: int | None = None,
    seed: int = 0,
) -> Schedule:
    """Plan a whole graph for the shortest makespan that the effort allows.

    Parameters
    ----------
    seconds : array_like, shape (n, workers)
        Time of each task on each worker; infinite where it cannot run.
    kinds : sequence of str, optional
        What tasks are alike; by default those that accelerators speed up alike.
    links : Links, optional
        Transfers cost nothing by default.
    effort : int, optional
        How many looks at a task to spend.
    """
    table = seconds_of(seconds, len(dag)) if len(dag) else np.zeros((0, 1))
    trials = Trials(dag, table, None, links, kinds)
    return trials.schedule(trials.best(Goal(), effort, seed))


@dataclass(eq=False, slots=True)
class Draft:
    """A schedule as list scheduling makes it, from an order and modes.

    Attributes
    ----------
    priority, mode : array, shape (tasks,)
    makespan_s, cost : float
    plan : Schedule or None
        To be carried out as it is; else tasks are listed.
    """

    priority: Floats
    mode: Ints
    makespan_s: float
    cost: float
    plan: Schedule | None = None


class Trials:
    """Makes and compares schedules of one graph on one machine.

    Parameters
    ----------
    seconds, joules : array_like, shape (n, workers) or (n, workers, points)
        As in `make_shop`.

    Attributes
    ----------
    point_of : array of int, shape (modes,)
        The operating point of each mode.
    """

    def __init__(
        self,
        dag: Dag,
        seconds: Floats,
        joules: Floats | None,
        links: Links | None,
        kinds: Sequence[str] | None,
    ) -> None:
        self.dag = dag
        self.links = links
        self.times = seconds[:, :, np.newaxis] if seconds.ndim == 2 else seconds
        self.shop, self.point_of = make_shop(dag, seconds, joules, links)
        self.kind = kind_of(self.shop, kinds)

    def first_come(self, goal: Goal) -> Draft:
        """Each task to where it is done first, as it becomes ready: the policy ``eft``."""
        anywhere = np.full(len(self.dag), -1, np.int32)
        start_s, worker, makespan_s = self._listed(np.zeros(len(self.dag)), anywhere)
        return self._draft(goal, -start_s, self.shop.pool_of[worker], makespan_s)

    def best(self, goal: Goal, effort: int | None = None, seed: int = 0) -> Draft:
        """The draft of least cost that is found."""
        if effort is None:
            effort = min(PER_TASK * len(self.dag), MOST)
        drafts = [self.first_come(goal), *self._hefts(goal)]
        if len(self.dag) and self.shop.seconds.shape[1] > 1:
            drafts += self._searched(goal, effort // 2, seed)
            drafts.sort(key=lambda draft: draft.cost)
            drafts += self._annealed(goal, drafts[0], effort // 2, seed)
        return min(drafts, key=lambda draft: draft.cost)

    def schedule(self, draft: Draft) -> Schedule:
        """A draft with the exact times of every worker."""
        from legato_rt.order.listing import replayed

        if draft.plan is not None:
            return draft.plan
        start_s, worker, _ = self._listed(draft.priority, draft.mode)
        tasks = np.arange(len(worker))
        took = self.times[tasks, worker, self.point_of[draft.mode]]
        if self.shop.linked:
            return Schedule(worker, start_s, start_s + took)
        place = np.empty(len(tasks), np.int64)
        place[self.shop.order] = tasks
        sequence = np.lexsort((place, start_s)).astype(np.int32)
        finish_s = np.empty(len(tasks))
        replayed(self.shop, took, sequence, worker, start_s, finish_s)
        return Schedule(worker, start_s, finish_s)

    def _listed(self, priority: Floats, mode: Ints) -> tuple[Floats, Ints, float]:
        from legato_rt.order.listing import listed, sent

        start_s, worker = np.empty(len(mode)), np.empty(len(mode), np.int32)
        make = sent if len(mode) and mode[0] < 0 else listed
        makespan_s = make(self.shop, priority, mode, start_s, worker, np.inf)
        return start_s, worker, makespan_s

    def _draft(self, goal: Goal, priority: Floats, mode: Ints, makespan_s: float) -> Draft:
        from legato_rt.order.goal_kernel import cost

        joules = float(self.shop.joules[np.arange(len(mode)), mode].sum())
        return Draft(priority, mode, makespan_s, cost(goal, makespan_s, joules))

    def _hefts(self, goal: Goal) -> list[Draft]:
        drafts = []
        for rank in ("mean", "fastest"):
            plan = heft(self.dag, self.times[:, :, 0], rank=rank, links=self.links)
            order, mode = -plan.start_s, self.shop.pool_of[plan.worker]
            drafts.append(self._draft(goal, order, mode, self._listed(order, mode)[2]))
            if not self.shop.linked:
                drafts.append(self._draft(goal, order, mode, plan.makespan_s))
                drafts[-1].plan = plan
        return drafts

    def _searched(self, goal: Goal, effort: int, seed: int) -> list[Draft]:
        """The best of the dispatch rule at the usual points, and at the most frugal ones."""
        from legato_rt.order.rule_search import search

        drafts = []
        bases = self._bases()
        for number in range(SEARCHES * len(bases)):
            base = bases[number % len(bases)]
            shop = self.shop._replace(
                seconds=np.ascontiguousarray(self.shop.seconds[:, base]),
                joules=np.ascontiguousarray(self.shop.joules[:, base]),
            )
            mode, start_s = np.empty(len(self.dag), np.int32), np.empty(len(self.dag))
            unit_s = lower_bounds(self.dag, self.times[:, :, 0], rounds=0).simple_s
            spend = effort // (SEARCHES * len(bases))
            best, holds = by_speed(shop), _holds(shop)
            args = shop, goal, self.kind, best, holds, unit_s, spend, seed + number
            if search(*args, mode, start_s) < np.inf:
                mode = base[mode].astype(np.int32)
                drafts.append(self._draft(goal, -start_s, mode, self._listed(-start_s, mode)[2]))
        return drafts

    def _bases(self) -> list[Ints]:
        """For each pool a mode: the usual ones, and those of least energy."""
        pools = np.arange(len(self.shop.workers))
        spent = np.where(np.isfinite(self.shop.seconds), self.shop.joules, 0.0).sum(axis=0)
        frugal = [min(np.flatnonzero(self.shop.pool == p), key=lambda m: spent[m]) for p in pools]
        return [pools] if np.array_equal(frugal, pools) else [pools, np.array(frugal)]

    def _annealed(self, goal: Goal, start: Draft, effort: int, seed: int) -> list[Draft]:
        from legato_rt.order.annealing import anneal

        drafts = []
        steps = effort // (len(TEMPERATURES) * len(self.dag) * (8 if self.shop.linked else 1))
        for temperature in TEMPERATURES:
            priority, mode = start.priority.copy(), start.mode.copy()
            anneal(self.shop, goal, self.kind, priority, mode, steps, temperature, seed)
            drafts.append(self._draft(goal, priority, mode, self._listed(priority, mode)[2]))
        return drafts


def kind_of(shop: Shop, kinds: Sequence[str] | None) -> Ints:
    """A small number for each task: the same for tasks of one kind, or of like acceleration."""
    if kinds is not None and len(set(kinds)) <= KINDS:
        return np.unique(kinds, return_inverse=True)[1].reshape(-1).astype(np.int32)
    gain = _gains(shop)
    if not len(gain):
        return np.zeros(0, np.int32)
    edges = np.unique(np.quantile(gain, np.linspace(0, 1, KINDS + 1)[1:-1]))
    return np.searchsorted(edges, gain).astype(np.int32)


def _holds(shop: Shop) -> Floats:
    gains = np.unique(np.quantile(_gains(shop), np.linspace(0, 1, KINDS)))
    return np.concatenate(([np.inf], gains * (1 - 1e-9)))


def _gains(shop: Shop) -> Floats:
    """Time in the fastest pool over time in the next, for each task; 0 where there is no other."""
    times = np.sort(shop.seconds[:, : len(shop.workers)], axis=1)
    if times.shape[1] == 1 or not len(times):
        return np.zeros(len(times))
    return np.where(np.isfinite(times[:, 1]), times[:, 0] / np.maximum(times[:, 1], 1e-300), 0.0)
