"""A plan that is being carried out: which worker does what when, and what is planned anew."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from legato_rt.future import READY, RUNNING, WAITING
from legato_rt.node import Node
from legato_rt.order import Dag, Schedule, heft
from legato_rt.order.arrays import Floats

MOST = 5000
"""How many tasks that were not foreseen are planned at once."""
TOLERANCE = 0.1
"""A task that ends at another time than it was due, by this share of the plan, makes it wrong."""
AHEAD = 8
"""How many ready tasks a waiting worker looks at for one to put in between."""


@dataclass(slots=True)
class Entry:
    """When and where a node is due.

    Attributes
    ----------
    point : str
        Operating point, empty for the worker's usual one.
    seconds : array, shape (workers,)
        Its time on each worker.
    before : list of Node
        What it waits for, as far as that is planned.
    """

    worker: int
    start_s: float
    finish_s: float
    seconds: Floats
    before: list[Node]
    point: str = ""


class Book:
    """The entries of all planned nodes that are not over, and each worker's order.

    Attributes
    ----------
    length_s : float
        Of the plan that was made last.
    whole : bool
        Whether all that planned nodes wait for is planned before them.
    """

    def __init__(self, workers: int) -> None:
        self.entries: dict[Node, Entry] = {}
        self.orders: list[deque[Node]] = [deque() for _ in range(workers)]
        self.length_s = 0.0
        self.whole = True
        self._since = 0
        self._until = [0.0] * workers
        self._ready: list[list[tuple[float, int, Node]]] = [[] for _ in range(workers)]

    def now_ready(self, node: Node) -> int:
        """Queue a node with its worker, which is returned."""
        entry = self.entries[node]
        heapq.heappush(self._ready[entry.worker], (entry.start_s, node.seq, node))
        return entry.worker

    def next(self, worker: int, now: float) -> Node | None:
        """What a worker may start now: the next node, or one that is done before that is due."""
        ready = self._ready[worker]
        while ready and ready[0][2].state != READY:
            heapq.heappop(ready)
        if not ready or not self.whole:
            return ready[0][2] if ready else None
        due = self._due(worker)
        for _, _, node in heapq.nsmallest(AHEAD, ready):
            if node.state != READY:
                continue
            if node is due or now + self.entries[node].seconds[worker] <= self.entries[due].start_s:
                return node
        return None

    def _due(self, worker: int) -> Node:
        """The first node in a worker's order that did not start."""
        order = self.orders[worker]
        while order[0].state >= RUNNING:
            over = order.popleft()
            if over.state > RUNNING:
                self.entries.pop(over, None)
        return order[0]

    def add(
        self,
        nodes: Sequence[Node],
        dag: Dag,
        seconds: Floats,
        schedule: Schedule,
        since: float,
        points: Sequence[str] = (),
    ) -> None:
        """Enter a schedule of nodes that are not planned yet, counted from a time."""
        for i, node in enumerate(nodes):
            first, last = dag.predecessor_start[i], dag.predecessor_start[i + 1]
            self.entries[node] = Entry(
                int(schedule.worker[i]),
                float(schedule.start_s[i]) + since,
                float(schedule.finish_s[i]) + since,
                seconds[i],
                [nodes[k] for k in dag.predecessors[first:last]],
                points[i] if points else "",
            )
        self.length_s = schedule.makespan_s
        self._sort(nodes)

    def over(self, node: Node, now: float) -> None:
        """Take out a node that has run; renew the plan if it has become wrong.

        Never before a quarter of the plan was carried out, so that renewing costs little in all.
        """
        entry = self.entries.pop(node, None)
        if entry is None:
            return
        self._since += 1
        departed = abs(now - entry.finish_s) > TOLERANCE * self.length_s
        if departed and self._since > len(self.entries) // 4:
            self._since = 0
            self._renew(now)

    def append(self, times: dict[Node, list[float]], now: float) -> None:
        """Plan nodes that were not foreseen, after what each worker has to do."""
        self.whole = False
        nodes = list(times)
        index = {node: i for i, node in enumerate(nodes)}
        edges = [(i, index[n]) for i, node in enumerate(nodes) for n in _after(node) if n in index]
        dag = Dag.from_edges(len(nodes), [a for a, _ in edges], [b for _, b in edges])
        seconds = np.array(list(times.values()))
        available = [max(until - now, 0.0) for until in self._until]
        self.add(nodes, dag, seconds, heft(dag, seconds, available_s=available), now)

    def behind(self, root: Node) -> list[Node]:
        """A node and the waiting ones that hang on it and are not planned."""
        found, look = {root: None}, [root]
        while look and len(found) < MOST:
            for node in _after(look.pop()):
                waits = node.state == WAITING and node.choice is not None and node.choice.devices
                if waits and node not in found and node not in self.entries:
                    found[node] = None
                    look.append(node)
        return list(found)

    def _renew(self, now: float) -> None:
        """Plan anew, in the same order, what is not ready yet."""
        nodes = [node for node in self.entries if node.state == WAITING]
        if not nodes:
            return
        index = {node: i for i, node in enumerate(nodes)}
        release, available = np.zeros(len(nodes)), np.zeros(len(self.orders))
        self._postpone(now, available)
        edges: list[tuple[int, int]] = []
        for i, node in enumerate(nodes):
            for before in self.entries[node].before:
                if before in index:
                    edges.append((index[before], i))
                elif before in self.entries:
                    release[i] = max(release[i], self.entries[before].finish_s - now)
        dag = Dag.from_edges(len(nodes), [a for a, _ in edges], [b for _, b in edges])
        seconds = np.array([self.entries[node].seconds for node in nodes])
        order = [-self.entries[node].start_s for node in nodes]
        schedule = heft(dag, seconds, order_by=order, release_s=release, available_s=available)
        for i, node in enumerate(nodes):
            entry = self.entries[node]
            entry.point = ""
            entry.worker = int(schedule.worker[i])
            entry.start_s = float(schedule.start_s[i]) + now
            entry.finish_s = float(schedule.finish_s[i]) + now
        self.length_s = schedule.makespan_s
        for waiting in self.orders:
            waiting.clear()
        self._until = [0.0] * len(self.orders)
        self._sort(n for n in self.entries if n.state in (WAITING, READY))

    def _postpone(self, now: float, available: Floats) -> None:
        """Expect what runs or is ready from now on, and note how long that takes its workers."""
        at_work = [(n, e) for n, e in self.entries.items() if n.state in (READY, RUNNING)]
        for node, entry in sorted(at_work, key=lambda pair: (-pair[0].state, pair[1].start_s)):
            if node.state == READY:
                entry.start_s = max(now + available[entry.worker], entry.start_s)
                entry.finish_s = entry.start_s + float(entry.seconds[entry.worker])
            entry.finish_s = max(entry.finish_s, now)
            available[entry.worker] = max(available[entry.worker], entry.finish_s - now)

    def _sort(self, nodes: Iterable[Node]) -> None:
        for node in sorted(nodes, key=lambda n: self.entries[n].start_s):
            entry = self.entries[node]
            self.orders[entry.worker].append(node)
            self._until[entry.worker] = max(self._until[entry.worker], entry.finish_s)


def _after(node: Node) -> list[Node]:
    return [*(node.successors or ()), *(node.followers or ())]
