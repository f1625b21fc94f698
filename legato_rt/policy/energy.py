"""``energy``: what the objective asks for, with energy in it, within a bound on the slowdown.

A graph that is known is planned as a whole (`legato_rt.order.portfolio`): the devices and operating
points of least cost, where the makespan may be ``slowdown_bound`` times that of ``eft`` at most.

Without a plan each ready task is placed by J = w·E/E_min + (1 - w)·F/F_min (or the product that the
objective names).  F is how long it is until the task is done.  E is what the task adds to the
energy: what its device draws more than idle, and what the whole machine draws idle until the task
is done, so that crawling on the most frugal device is not mistaken for saving.  Candidates that
take longer than the bound allows, against the first to be done at its usual point, are out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from legato_rt.node import Node
from legato_rt.objective import Objective
from legato_rt.order import Dag
from legato_rt.order.arrays import Floats
from legato_rt.order.goal import Goal
from legato_rt.order.portfolio import Trials
from legato_rt.placement import Candidate
from legato_rt.policy.planned import Planned
from legato_rt.site import Site


class Energy(Planned):
    """Places by the objective; plans what it knows beforehand.

    Parameters
    ----------
    effort : int, optional
        Looks at a task that a plan may take; by default more for larger graphs.
    """

    name = "energy"
    tunes = True
    looks_behind = False

    def __init__(self, effort: int | None = None) -> None:
        self._effort = effort

    def equip(self, site: Site) -> None:
        """See `Policy.equip`; an objective of time alone is taken for one of energy alone."""
        super().equip(site)
        asked = site.objective
        self.objective = asked if asked.counts_energy else Objective(1.0, asked.slowdown_bound)
        self._idle_w = sum(d.workers * d.power.idle_w for d in site.machine.devices)

    # -- without a plan ---------------------------------------------------------------------

    def choose(self, node: Node, candidates: Sequence[Candidate]) -> Candidate:
        """The candidate of least J."""
        usual = [c for c in candidates if c.point == self.lanes[c.device].device.point().name]
        wait_s = {c: max(c.finish_s - self.now, 1e-12) for c in candidates}
        bound = self.objective.slowdown_bound
        allowed = list(candidates)
        if bound is not None and usual:
            limit_s = bound * min(wait_s[c] for c in usual)
            allowed = [c for c in candidates if wait_s[c] <= limit_s] or usual
        joules = {c: max(self._added(c) + self._idle_w * wait_s[c], 1e-12) for c in allowed}
        least_j, least_s = min(joules.values()), min(wait_s[c] for c in allowed)
        score = self.objective.score
        return min(allowed, key=lambda c: score(joules[c] / least_j, wait_s[c] / least_s))

    def regret(self, candidate: Candidate) -> float:
        """See `Placing.regret`."""
        return self._added(candidate) + self._idle_w * candidate.seconds

    def _added(self, candidate: Candidate) -> float:
        """Joules of a candidate over what its worker draws idle."""
        idle_w = self.lanes[candidate.device].device.power.idle_w
        return candidate.joules - idle_w * candidate.seconds * candidate.width

    # -- with a plan ------------------------------------------------------------------------

    def foresee(self, nodes: Sequence[Node], dag: Dag) -> None:
        """See `Policy.foresee`."""
        if not nodes:
            return
        seconds, joules = self._tables(nodes)
        kinds = [node.task.name for node in nodes]
        trials = Trials(dag, seconds, joules, self._links(), kinds)
        draft = trials.best(self._goal(trials), self._effort)
        plan = trials.schedule(draft)
        tasks, point = np.arange(len(nodes)), trials.point_of[draft.mode]
        expected = seconds[:, :, 0].copy()
        expected[tasks, plan.worker] = seconds[tasks, plan.worker, point]
        points = [self._points(int(w))[p] for w, p in zip(plan.worker, point, strict=True)]
        self.book.add(nodes, dag, expected, plan, self.now, points)

    def _goal(self, trials: Trials) -> Goal:
        """The objective in the units of a graph: those of ``eft``."""
        energy = Goal(1.0, 0.0, 0, self._idle_w)
        first = trials.first_come(energy)
        wanted = self.objective
        bound = wanted.slowdown_bound
        return Goal(
            wanted.energy_weight / first.cost,
            (1 - wanted.energy_weight) / first.makespan_s,
            wanted.time_power,
            self._idle_w,
            np.inf if bound is None else bound * first.makespan_s,
        )

    def _points(self, worker: int) -> list[str]:
        device = self.lanes[self.workers[worker]].device
        return [point.name for point in device.points or (device.point(),)]

    def _tables(self, nodes: Sequence[Node]) -> tuple[Floats, Floats]:
        """Seconds, and joules over idle, of every node on every worker at every point."""
        most = max(len(lanes.device.points or "1") for lanes in self.lanes.values())
        shape = len(nodes), len(self.workers), most
        seconds, joules = np.full(shape, np.inf), np.zeros(shape)
        for name, lanes in self.lanes.items():
            device, columns = lanes.device, [i for i, w in enumerate(self.workers) if w == name]
            for row, node in enumerate(nodes):
                assert node.choice is not None
                variant = node.choice.by_device.get(name)
                for k, point in enumerate(device.points or (device.point(),)):
                    if variant is not None:
                        known = self.site.costs.estimate(node, device, variant, point.name, 1)
                        took, spent, _ = self._expected(known, point.active_w)
                        seconds[row, columns, k] = took
                        joules[row, columns, k] = spent - took * device.power.idle_w
        return seconds, joules
