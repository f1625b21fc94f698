"""A scheduler that holds its invariants against the whole graph after every call.

Slow, and for tests: ``Runtime(validate=True)``, and the fixtures of `legato_rt.testing`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from legato_rt.errors import InternalError, LegatoError
from legato_rt.future import CANCELLED, FAILED, FINISHED, JOINING, RUNNING, WAITING
from legato_rt.node import Node
from legato_rt.placement import HOST
from legato_rt.policy.base import Policy
from legato_rt.scheduler import Scheduler


class CheckedScheduler(Scheduler):
    """Keeps all pending nodes in `nodes` and calls `check` after every step."""

    def __init__(self, policy: Policy, workers: Sequence[str]) -> None:
        super().__init__(policy, workers)
        self.nodes: dict[Node, None] = {}

    def submit(
        self,
        node: Node,
        futures: list[Node] | None,
        data: list[tuple[Any, int]] | None,
        after: Sequence[Node] = (),
    ) -> None:
        """See `Scheduler.submit`."""
        self.nodes[node] = None
        try:
            super().submit(node, futures, data, after)
        finally:
            self.check()

    def next(self, worker: int) -> Node | None:
        """See `Scheduler.next`."""
        node = super().next(worker)
        self.check()
        return node

    def finish(self, node: Node, value: Any, worker: int, onward: bool = True) -> Node | None:
        """See `Scheduler.finish`."""
        following = super().finish(node, value, worker, onward)
        self.check()
        return following

    def fail(self, node: Node, error: LegatoError, worker: int, onward: bool = True) -> Node | None:
        """See `Scheduler.fail`."""
        following = super().fail(node, error, worker, onward)
        self.check()
        return following

    def cancel(self, node: Node, moment: int = -1) -> bool:
        """See `Scheduler.cancel`."""
        cancelled = super().cancel(node, moment)
        self.check()
        return cancelled

    def check(self) -> None:
        """Hold every invariant.

        Raises
        ------
        InternalError
            Naming the invariant and the node that breaks it.
        """
        gone = [n for n in self.nodes if n.state >= FINISHED and not n.waiting]
        for node in gone:
            del self.nodes[node]
        edges: dict[Node, int] = {}
        for node in self.nodes:
            for other in (*(node.successors or ()), *(node.followers or ())):
                edges[other] = edges.get(other, 0) + 1
        for node in self.nodes:
            for broken in _broken(node, edges.pop(node, 0)):
                raise InternalError(f"{broken}: {node.story}")
        if edges:
            raise InternalError(f"an edge leads to a node that is over: {next(iter(edges)).story}")
        if self.pending != len(self.nodes):
            raise InternalError(f"{len(self.nodes)} nodes are pending, {self.pending} are counted")
        for device, pool in self.parking.pools.items():
            if not 0 <= pool.searching <= len(self.workers):
                raise InternalError(f"{pool.searching} workers of {device} are searching")
            if pool.idle and not pool.searching and self.policy.has_work(pool.idle[-1]):
                raise InternalError(f"{device} sleeps while there is work and nobody looks for it")


def _broken(node: Node, edges: int) -> Iterator[str]:
    """The invariants that a pending node breaks, given how many edges lead to it."""
    state = node.state
    if node.waiting != edges:
        yield f"{edges} edges lead to a node that waits for {node.waiting}"
    if node.waiting and state not in (WAITING, CANCELLED):
        yield "a node has started although it waits"
    if state in (FINISHED, FAILED):
        yield "a node is over although it waits"
    if state == WAITING and not node.waiting:
        yield "a node waits for nothing"
    if state == RUNNING and node.choice is not HOST and not hasattr(node, "worker"):
        yield "a node runs on no worker"
    if state == JOINING and not (node.scope is not None and node.scope.pending):
        yield "a node waits for children that it does not have"
