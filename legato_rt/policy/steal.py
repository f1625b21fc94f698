"""``steal``: work stealing with locality.

A task that a worker made ready waits in that worker's own queue, because its data is in that core's
cache; the worker takes its newest task first, and an idle one steals the oldest of somebody else.
Cilk's rule (Blumofe and Leiserson, J. ACM 46(5), 1999).
"""

from __future__ import annotations

from collections.abc import Sequence

from legato_rt.node import Node
from legato_rt.policy.base import Policy


class Steal(Policy):
    """Own queue last in first out, others' first in first out."""

    name = "steal"
    steals = True

    def place(self, node: Node, able: Sequence[int], by: int) -> int | None:
        """The worker that made the task ready, if it can run it; by rank in the queue of all."""
        return by if by in able and not node.options.priority else None

    def pop(self, worker: int) -> Node | None:
        """The newest of its own, then the oldest of all, then somebody else's oldest."""
        own = self.mine[worker]
        if own.plain and (not self.ranked or (self.top(worker) or 0) <= 0):
            node = own.pop_last()
            if node is not None:
                return node
        return super().pop(worker)
