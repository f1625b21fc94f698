"""What a policy that predicts knows of each device: who is busy until when, and what waits."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from legato_rt.future import CANCELLED, READY
from legato_rt.machine import Device
from legato_rt.node import Node


class Lanes:
    """The workers of one device, with the queue that they share.

    Every placed node is counted on the worker that was predicted to be free first.  Which worker
    really takes it does not matter to the sums, and prediction errors do not pile up: a worker's
    time is set right whenever a node counted on it starts or ends.

    Attributes
    ----------
    until_s : list of float
        When each worker is expected to finish what runs there.
    queued_s : list of float
        Expected seconds of work that waits, counted on each worker.
    """

    __slots__ = ("_arrivals", "_entries", "device", "first", "queued_s", "until_s")

    def __init__(self, device: Device, workers: Sequence[int]) -> None:
        self.device = device
        self.first = workers[0]
        # Workers that take turns compute as one.
        count = 1 if device.exclusive else len(workers)
        self.until_s = [0.0] * count
        self.queued_s = [0.0] * count
        self._entries: list[tuple[float, float, int, Node]] = []
        self._arrivals = 0

    def free(self, now: float) -> tuple[float, int]:
        """When the first worker is free of all that is placed, and which one it is."""
        best, number = 0.0, -1
        for i, until in enumerate(self.until_s):
            at = (until if until > now else now) + self.queued_s[i]
            if number < 0 or at < best:
                best, number = at, i
        return best, self.first + number

    def idle(self, now: float) -> float:
        """When all workers are free of all that is placed."""
        waits = zip(self.until_s, self.queued_s, strict=True)
        return max((until if until > now else now) + queued for until, queued in waits)

    def push(self, node: Node, urgency: float) -> None:
        """Queue a placed node: by priority, then by urgency, then in order of arrival."""
        placed = node.placed
        assert placed is not None
        self.queued_s[placed.worker - self.first] += placed.seconds
        self._arrivals += 1
        heapq.heappush(self._entries, (-node.options.priority, -urgency, self._arrivals, node))

    def pop(self) -> Node | None:
        """Take the first node that is still ready."""
        return heapq.heappop(self._entries)[3] if self.head() is not None else None

    def head(self) -> Node | None:
        """The node that `pop` would take."""
        entries = self._entries
        while entries and entries[0][3].state != READY:
            node = heapq.heappop(entries)[3]
            if node.state == CANCELLED:
                self._uncount(node)
        return entries[0][3] if entries else None

    def started(self, node: Node, now: float) -> None:
        """A node counted here starts."""
        placed = node.placed
        assert placed is not None
        self._uncount(node)
        self.until_s[placed.worker - self.first] = max(now, placed.start_s) + placed.seconds

    def finished(self, node: Node, now: float) -> None:
        """A node counted here is over."""
        assert node.placed is not None
        self.until_s[node.placed.worker - self.first] = now

    def _uncount(self, node: Node) -> None:
        placed = node.placed
        assert placed is not None
        number = placed.worker - self.first
        self.queued_s[number] = max(self.queued_s[number] - placed.seconds, 0.0)
