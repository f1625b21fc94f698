"""Base of the policies that plan a whole graph before it runs.

Each planned task waits for its own worker.  If the whole graph was known, the worker keeps to the
order of the plan: while the next task is not ready it takes others only if they will be done before
that one is due, so that a task on the critical path does not find its worker busy.

What was not foreseen is planned when the first task that it hangs on becomes ready, and from then
on workers never wait for a task that is not ready.  A single task is placed where it is done first.

When tasks end at other times than they were due, what is not ready yet is planned anew in the same
order.

Nobody waits for ever: of the planned tasks that are not over, the one with the earliest start is
first in its worker's order, and all that it needs is over, so that it is ready.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from legato_rt.future import READY
from legato_rt.node import Node
from legato_rt.order import Dag, Links, Schedule, heft
from legato_rt.order.arrays import Floats
from legato_rt.policy.base import Devices
from legato_rt.policy.book import Book
from legato_rt.policy.eft import Eft


class Planned(Eft):
    """Carries out a plan; a subclass makes it in `plan`.

    Attributes
    ----------
    looks_behind : bool
        Whether what was not foreseen is planned as it shows.
    """

    plans = True
    rouses = True
    looks_behind = True

    def plan(
        self, dag: Dag, seconds: Floats, links: Links | None, kinds: Sequence[str]
    ) -> Schedule:
        """Plan a graph; ``seconds`` has shape (tasks, workers), infinite where one cannot run."""
        return heft(dag, seconds, links=links)

    def attach(self, workers: Sequence[str]) -> None:
        """See `Policy.attach`."""
        super().attach(workers)
        self.book = Book(len(self.workers))

    def foresee(self, nodes: Sequence[Node], dag: Dag) -> None:
        """See `Policy.foresee`."""
        seconds = np.array([self._times(node) for node in nodes]).reshape(len(nodes), -1)
        schedule = self.plan(dag, seconds, self._links(), [node.task.name for node in nodes])
        self.book.add(nodes, dag, seconds, schedule, self.now)

    def _times(self, node: Node) -> list[float]:
        """Seconds of a node on every worker."""
        assert node.choice is not None
        by_device: dict[str, float] = {}
        for name, variant in node.choice.by_device.items():
            device = self.lanes[name].device
            known = self.site.costs.estimate(node, device, variant, device.point().name, 1)
            by_device[name] = self._expected(known, 0.0)[0]
        return [by_device.get(name, float("inf")) for name in self.workers]

    def _links(self) -> Links | None:
        if not self.site.data.moves:
            return None
        memories = [self.lanes[name].device.memory for name in self.workers]
        return Links(*self.site.machine.transfers(memories))

    # -- carrying it out --------------------------------------------------------------------

    def push(self, node: Node, devices: Devices, by: int) -> int | None:
        """See `Policy.push`; a planned node waits for its worker, others as in `Eft`."""
        entry = self.book.entries.get(node)
        if entry is None and self.looks_behind:
            found = self.book.behind(node)
            if len(found) > 1:
                self.book.append({n: self._times(n) for n in found}, self.now)
                entry = self.book.entries[node]
        if entry is None or self.workers[entry.worker] not in devices:
            self.book.entries.pop(node, None)
            return super().push(node, devices, by)
        name = self.workers[entry.worker]
        found_there = self.candidates(node, frozenset((name,)))
        expected = next((c for c in found_there if c.point == entry.point), found_there[0])
        start_s = max(self.now, entry.start_s)
        node.placed = expected._replace(worker=entry.worker, start_s=start_s)
        self.site.data.bring(node, self.lanes[name].device, self.now)
        return self.book.now_ready(node)

    def finished(self, node: Node) -> None:
        """See `Policy.finished`."""
        super().finished(node)
        self.book.over(node, self.now)

    def pop(self, worker: int) -> Node | None:
        """The worker's next task; while that is not ready, what fits in before it."""
        node = self.book.next(worker, self.now)
        return super().pop(worker) if node is None else node

    def has_work(self, worker: int) -> bool:
        """See `Policy.has_work`."""
        return self.book.next(worker, self.now) is not None or super().has_work(worker)

    def drain(self) -> list[Node]:
        """See `Policy.drain`."""
        ready = [node for node in self.book.entries if node.state == READY]
        return ready + super().drain()
