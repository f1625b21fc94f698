"""The best of many schedules of a known graph.

Members, each simulated with the same times:

* HEFT by mean and by fastest times;
* each task to where it is done first, in the order in which tasks become ready;
* the dispatch rule (`dispatch`), with the best numbers that a search finds (`rule_search`);
* the best of these, improved task by task (`annealing`).

What it spends is counted in looks at a task, not in seconds, so that the same call gives the same
schedule on any machine.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from legato_rt.order.arrays import Floats, Ints
from legato_rt.order.bounds import lower_bounds
from legato_rt.order.dag import Dag
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
    """Plan a whole graph as well as the effort allows.

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
    if effort is None:
        effort = min(PER_TASK * len(dag), MOST)
    if not len(dag):
        return heft(dag, seconds, links=links)
    table = seconds_of(seconds, len(dag))
    shop = make_shop(dag, table, links)
    members = [_plan(shop, table, np.zeros(len(dag)), np.full(len(dag), -1, np.int32))]
    for rule in ("mean", "fastest"):
        members.append(heft(dag, table, rank=rule, links=links))
    if len(shop.workers) > 1:
        members += _searched(shop, table, kind_of(shop, kinds), dag, effort // 2, seed)
    if shop.linked:
        members = [_sent_anew(shop, table, plan) for plan in members]
    members.sort(key=lambda plan: plan.makespan_s)
    members.append(_annealed(shop, table, members[0], effort // 2, seed))
    return min(members, key=lambda plan: plan.makespan_s)


def kind_of(shop: Shop, kinds: Sequence[str] | None) -> Ints:
    """A small number for each task: the same for tasks of one kind, or of like acceleration."""
    if kinds is not None and len(set(kinds)) <= KINDS:
        return np.unique(kinds, return_inverse=True)[1].reshape(-1).astype(np.int32)
    gain = _gains(shop)
    edges = np.unique(np.quantile(gain, np.linspace(0, 1, KINDS + 1)[1:-1]))
    return np.searchsorted(edges, gain).astype(np.int32)


def _gains(shop: Shop) -> Floats:
    """Time on the fastest group over time on the next, for each task; 0 where there is no other."""
    times = np.sort(shop.seconds, axis=1)
    return np.where(np.isfinite(times[:, 1]), times[:, 0] / np.maximum(times[:, 1], 1e-300), 0.0)


def _searched(
    shop: Shop, table: Floats, kind: Ints, dag: Dag, effort: int, seed: int
) -> list[Schedule]:
    from legato_rt.order.rule_search import search

    gains = np.unique(np.quantile(_gains(shop), np.linspace(0, 1, KINDS)))
    holds = np.concatenate(([np.inf], gains * (1 - 1e-9)))
    bound_s = lower_bounds(dag, table, rounds=0).simple_s
    found = []
    for number in range(SEARCHES):
        group, start_s = np.empty(len(kind), np.int32), np.empty(len(kind))
        draws = seed + number
        spend = effort // SEARCHES
        least = search(shop, kind, by_speed(shop), holds, bound_s, spend, draws, group, start_s)
        if least < np.inf:
            found.append(_plan(shop, table, -start_s, group))
    return found


def _annealed(shop: Shop, table: Floats, plan: Schedule, effort: int, seed: int) -> Schedule:
    from legato_rt.order.annealing import anneal

    best = plan
    steps = effort // (len(TEMPERATURES) * len(plan.worker) * (8 if shop.linked else 1))
    for temperature in TEMPERATURES:
        priority, group = -plan.start_s, shop.group_of[plan.worker]
        anneal(shop, priority, group, steps, temperature, seed)
        best = min(best, _plan(shop, table, priority, group), key=lambda plan: plan.makespan_s)
    return best


def _sent_anew(shop: Shop, table: Floats, plan: Schedule) -> Schedule:
    """A plan's order and groups, with transfers as they will happen."""
    return _plan(shop, table, -plan.start_s, shop.group_of[plan.worker])


def _plan(shop: Shop, table: Floats, priority: Floats, group: Ints) -> Schedule:
    """List tasks by priority, with the exact times of every worker."""
    from legato_rt.order.listing import listed, replayed, sent

    tasks = len(priority)
    start_s, finish_s, worker = np.empty(tasks), np.empty(tasks), np.empty(tasks, np.int32)
    make = sent if tasks and group[0] < 0 else listed
    make(shop, priority, group, start_s, worker, np.inf)
    if shop.linked:
        return Schedule(worker, start_s, start_s + table[np.arange(tasks), worker])
    place = np.empty(tasks, np.int64)
    place[shop.order] = np.arange(tasks)
    sequence = np.lexsort((place, start_s)).astype(np.int32)
    replayed(shop, table, sequence, worker, start_s, finish_s)
    return Schedule(worker, start_s, finish_s)
