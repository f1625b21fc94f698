"""What a policy is: the place where ready tasks wait for a worker.

A policy overrides `Policy.place`, which names the worker in whose queue a ready task waits, or
`None` for the queue of all.  Everything else is shared: higher priorities first, in order of
arrival among equals, and never a task on a worker that has no variant for it.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Sequence

from legato_rt.future import READY
from legato_rt.node import Node
from legato_rt.order import Dag
from legato_rt.site import Site

Devices = frozenset[str]


class ReadyQueue:
    """Ready nodes, higher priority first, in order of arrival among equals.

    Cancelled nodes stay in until they come up, and are skipped then.

    Attributes
    ----------
    plain : deque of Node
        Nodes without priority.
    ranked : list of (int, int, Node)
        A heap of the others.
    """

    __slots__ = ("_arrivals", "plain", "ranked")

    def __init__(self) -> None:
        self.plain: deque[Node] = deque()
        self.ranked: list[tuple[int, int, Node]] = []
        self._arrivals = 0

    def push(self, node: Node) -> None:
        """Add a node at the end of its priority."""
        priority = node.options.priority
        if priority:
            self._arrivals += 1
            heapq.heappush(self.ranked, (-priority, self._arrivals, node))
        else:
            self.plain.append(node)

    def pop(self) -> Node | None:
        """Take the first node that is still ready."""
        ranked, plain = self.ranked, self.plain
        while plain and not ranked:
            node = plain.popleft()
            if node.state == READY:
                return node
        while ranked or plain:
            if ranked and (ranked[0][0] < 0 or not plain):
                node = heapq.heappop(ranked)[2]
            else:
                node = plain.popleft()
            if node.state == READY:
                return node
        return None

    def pop_last(self) -> Node | None:
        """Take the node without priority that came last; others as `pop` does."""
        plain = self.plain
        while plain and not (self.ranked and self.ranked[0][0] < 0):
            node = plain.pop()
            if node.state == READY:
                return node
        return self.pop()

    @property
    def top(self) -> int | None:
        """Priority of the node that `pop` would take, or `None` if there is none."""
        ranked, plain = self.ranked, self.plain
        while ranked and ranked[0][2].state != READY:
            heapq.heappop(ranked)
        while plain and plain[0].state != READY:
            plain.popleft()
        if ranked and (ranked[0][0] < 0 or not plain):
            return -ranked[0][0]
        return 0 if plain else None


class Policy:
    """Base of all policies; by itself one queue for all, first come first served.

    Attributes
    ----------
    name : str
        What ``Runtime(policy=…)`` calls it.
    steals : bool
        Whether an idle worker takes tasks from the queues of others.
    chains : bool
        Whether a worker may go straight on with a task that it made ready, without a queue.
    timed : bool
        Whether it predicts: it is told the time in `now`, and what starts and finishes.
    rouses : bool
        Whether the end of a node may give other workers work that was held back from them.
    plans : bool
        Whether it makes use of a graph that is known beforehand.
    now : float
        Seconds on the executor's clock, if ``timed``.
    ranked : bool
        Whether any node had a priority so far.
    """

    name = ""
    steals = False
    chains = True
    timed = False
    rouses = False
    plans = False
    now = 0.0

    def equip(self, site: Site) -> None:
        """Take what predictions need; called before `attach`, and only if `timed`."""

    def foresee(self, nodes: Sequence[Node], dag: Dag) -> None:
        """Take a whole graph that is about to be submitted; called only if `plans`.

        Parameters
        ----------
        nodes : sequence of Node
            In the order of the graph's tasks.
        dag : Dag
        """

    def attach(self, workers: Sequence[str]) -> None:
        """Prepare for workers of these devices, numbered in order."""
        self.workers = list(workers)
        self.mine = [ReadyQueue() for _ in self.workers]
        self.sources = [[queue] for queue in self.mine]
        self.shared: dict[Devices, ReadyQueue] = {}
        self.classes: dict[Devices, list[int]] = {}
        self.ranked = False

    def place(self, node: Node, able: Sequence[int], by: int) -> int | None:
        """Choose where a ready node waits.

        Parameters
        ----------
        node : Node
        able : sequence of int
            Workers that have a variant for it.
        by : int
            The worker that made it ready; -1 if the program did, which only a policy that is
            `timed` is asked about.

        Returns
        -------
        int or None
            A worker of ``able``, or `None` for the first that is free.
        """
        return None

    def push(self, node: Node, devices: Devices, by: int) -> int | None:
        """Queue a ready node that workers of ``devices`` can run; return what `place` chose."""
        able = self.classes.get(devices)
        if able is None:
            able = self._new_class(devices)
        # What the program submits waits for anybody, unless the policy predicts.
        where = self.place(node, able, by) if by >= 0 or self.timed else None
        queue = self.shared[devices] if where is None else self.mine[where]
        if node.options.priority:
            self.ranked = True
            queue.push(node)
        else:
            queue.plain.append(node)
        return where

    def _new_class(self, devices: Devices) -> list[int]:
        able = [i for i, name in enumerate(self.workers) if name in devices]
        self.classes[devices] = able
        self.shared[devices] = ReadyQueue()
        for i in able:
            self.sources[i].append(self.shared[devices])
        return able

    def started(self, node: Node, worker: int) -> None:
        """A node starts on a worker; told only if `timed`."""

    def finished(self, node: Node) -> None:
        """A node's body is over, in whatever way; told only if `timed`."""

    def admits(self, node: Node) -> bool:
        """Whether a ready node may start now; asked only if `timed`, besides `pop`."""
        return True

    def pop(self, worker: int) -> Node | None:
        """Take the next node for an idle worker: its own queue before those of all, by priority."""
        sources = self.sources[worker]
        if not self.ranked:
            for queue in sources:
                if queue.plain:
                    node = queue.pop()
                    if node is not None:
                        return node
        else:
            best = max(sources, key=_top)
            node = best.pop()
            if node is not None:
                return node
        return self._steal(worker) if self.steals else None

    def top(self, worker: int) -> int | None:
        """Highest priority that waits for a worker, or `None` if nothing does."""
        return max((t for q in self.sources[worker] if (t := q.top) is not None), default=None)

    def has_work(self, worker: int) -> bool:
        """Whether `pop` would find a node."""
        if any(queue.top is not None for queue in self.sources[worker]):
            return True
        name = self.workers[worker]
        return self.steals and any(
            queue.top is not None and other == name
            for queue, other in zip(self.mine, self.workers, strict=True)
        )

    def drain(self) -> list[Node]:
        """Take out all nodes that wait, in no order."""
        found: list[Node] = []
        for queue in (*self.mine, *self.shared.values()):
            while (node := queue.pop()) is not None:
                found.append(node)
        return found

    def _steal(self, worker: int) -> Node | None:
        """Take the oldest node of the nearest worker of the same device that has one."""
        count = len(self.workers)
        for step in range(1, count):
            victim = (worker + step) % count
            if self.mine[victim].plain and self.workers[victim] == self.workers[worker]:
                node = self.mine[victim].pop()
                if node is not None:
                    return node
        return None


def _top(queue: ReadyQueue) -> float:
    top = queue.top
    return -math.inf if top is None else top
