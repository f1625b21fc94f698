"""The scheduler: a pure state machine from calls to instructions.

::

                    ┌──────────── cancel ───────────┐
    waiting ──▶ ready ──▶ running ──▶ joining       │
       │                    │   │        │          ▼
       │                    │   └────────┴──▶ finished / failed     cancelled
       └── a failure among what it waits for ──────▶ failed

A node that its device had no room for goes from running back to ready, for other devices.

It holds no thread, clock, device or random source.  An executor calls `submit`, `next`, `finish`,
`fail` and `cancel`, runs what they return, and after each call obeys two lists: `wakes`, workers
that have something to look for, and `completed`, nodes whose callbacks are due.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from legato_rt.arguments import ATOM, KINDS, resolve
from legato_rt.errors import DependencyError, IllegalTransition, LegatoError
from legato_rt.future import (
    CANCELLED,
    FAILED,
    FINISHED,
    JOINING,
    READY,
    RUNNING,
    STATES,
    WAITING,
    Future,
    deliver,
)
from legato_rt.graph import Graph, doom, edge
from legato_rt.node import Node, Scope
from legato_rt.outcomes import cancelled, doomed, is_past, join, let_go
from legato_rt.parking import Parking, Pool
from legato_rt.placement import HOST
from legato_rt.policy.base import Policy


class Scheduler:
    """Holds the graph of unfinished nodes and decides what each worker does next.

    Parameters
    ----------
    policy : Policy
    workers : sequence of str
        Device name of each worker.

    Attributes
    ----------
    pending : int
        Nodes that are not over.
    wakes : list of int
        Idle workers to wake; the executor empties it.
    completed : list of Future
        Nodes that are over and have callbacks; the executor empties it.
    timed : bool
        Whether the policy predicts: the executor then sets ``policy.now`` before each call.
    """

    def __init__(self, policy: Policy, workers: Sequence[str]) -> None:
        self.graph = Graph()
        self.policy = policy
        self.workers = list(workers)
        self.pending = 0
        self.completed: list[Future[Any]] = []
        self.parking = Parking(self.workers)
        self.wakes = self.parking.wakes
        self.closing = False
        self.timed = policy.timed
        policy.attach(self.workers)

    def submit(
        self,
        node: Node,
        futures: list[Node] | None,
        data: list[tuple[Any, int]] | None,
        after: Sequence[Node] = (),
    ) -> None:
        """Add a node.

        Parameters
        ----------
        futures, data
            What its arguments hold.
        after : sequence of Node
            What must only be over before it.
        """
        for other in after:
            if other.state < FINISHED:
                edge(other, node, value=False)
        self.pending += 1
        node.parent.pending += 1
        if futures is not None or data is not None:
            try:
                self.graph.link(node, futures, data)
            except LegatoError as error:
                # The edges found so far keep the order of others: they are released in turn.
                node.value = error
                deliver(error, node.seq)
                if not node.waiting:
                    self._over(node, -1, False)
                raise
        if not node.waiting:
            if node.value is None and not self.closing and node.choice is not None:
                self._ready(node, -1)
            else:
                self._over(node, -1, False)

    def next(self, worker: int) -> Node | None:
        """Start the next node on an idle worker; `None` parks it until it is in `wakes`."""
        parking = self.parking
        if parking.woken[worker]:
            parking.look(worker)
        node = self.policy.pop(worker)
        if node is None:
            parking.park(worker)
            return None
        self._start(node, worker)
        pool = parking.pool_of[worker]
        if pool.idle:
            if worker in pool.idle:
                pool.idle.remove(worker)  # it looked without being woken
            self._wake_next(pool)
        return node

    def take(self, node: Node, worker: int) -> bool:
        """Start one certain node on a worker, if it is ready and the worker can run it."""
        able = node.choice is not None and self.workers[worker] in node.choice.devices
        if node.state != READY or not able or (self.timed and not self.policy.admits(node)):
            return False
        self._start(node, worker)
        return True

    def finish(self, node: Node, value: Any, worker: int, onward: bool = True) -> Node | None:
        """A body returned: release what waits for it.

        Returns
        -------
        Node or None
            What the worker runs next (only with ``onward``), started already.
        """
        if node.state != RUNNING:
            raise self._illegal(node, FINISHED)
        if self.timed:
            self.policy.finished(node)
        node.value = value
        node.args = ()
        node.kwargs = None
        scope = node.scope
        if scope is not None:
            if scope.pending:
                node.state = JOINING
                return self.next(worker) if onward else None
            join(node, scope)
        else:
            node.state = FINISHED
        follower = self._over(node, worker, onward)
        return self.next(worker) if follower is None and onward else follower

    def fail(self, node: Node, error: LegatoError, worker: int, onward: bool = True) -> Node | None:
        """A body raised; what needs the node fails with it, everything else goes on."""
        if node.state != RUNNING:
            raise self._illegal(node, FAILED)
        if self.timed:
            self.policy.finished(node)
        node.value = error
        let_go(node)
        scope = node.scope
        if scope is not None and scope.pending:
            scope.error = error
            node.state = JOINING
        else:
            node.state = FAILED
            self._over(node, worker, False)
        return self.next(worker) if onward else None

    def retreat(self, node: Node, worker: int) -> bool:
        """Put a node back that its device could not take; false if no other device can."""
        choice = node.choice
        assert choice is not None
        others = choice.without(self.workers[worker])
        if not others.devices:
            return False
        if node.state != RUNNING:
            raise self._illegal(node, READY)
        if self.timed:
            self.policy.finished(node)
        node.choice = others
        node.state = WAITING
        self._ready(node, worker)
        return True

    def cancel(self, node: Node, moment: int = -1) -> bool:
        """Cancel a node that has not started; what depends on it fails.

        Parameters
        ----------
        moment : int
            When, on the count of submits.

        Returns
        -------
        bool
            Whether the node is cancelled now.
        """
        if node.state in (WAITING, READY):
            cancelled(node, moment)
            if node.waiting:
                # Its edges keep the order of others: they are released when it would have started.
                self._notify(node)
            else:
                self._over(node, -1, False)
        return node.state == CANCELLED

    def cancel_all(self) -> None:
        """Cancel all that has not started, and whatever would become ready from now on."""
        self.closing = True
        for node in self.policy.drain():
            self.cancel(node)

    def occupy(self, worker: int) -> None:
        """Take an idle worker into use without `next`: a body that waited goes on there."""
        pool = self.parking.pool_of[worker]
        if worker in pool.idle:
            pool.idle.remove(worker)
        self.parking.look(worker)
        self._wake_next(pool)

    # -- transitions ------------------------------------------------------------------------

    def _runnable(self, node: Node) -> bool:
        """Whether a node whose last edge is released will run, or is over in some way."""
        if node.state != WAITING or node.value is not None or self.closing:
            return False
        return node.choice is not None or self._placed(node)

    def _ready(self, node: Node, by: int) -> None:
        if node.state != WAITING:
            raise self._illegal(node, READY)
        node.state = READY
        choice = node.choice
        assert choice is not None
        if choice is HOST:
            node.state = RUNNING
            self._open_barrier(node.args[0])
            return
        where = self.policy.push(node, choice.devices, by)
        if where is not None and self.parking.is_parked(where):
            self.parking.wake(where)
        elif where is None or self.policy.steals:
            placed = node.placed
            for device in choice.by_device if placed is None else (placed.device,):
                self.parking.wake_one(device)

    def _start(self, node: Node, worker: int) -> None:
        if node.state != READY:
            raise self._illegal(node, RUNNING)
        node.state = RUNNING
        node.worker = worker
        if self.timed:
            self.policy.started(node, worker)

    def _wake_next(self, pool: Pool) -> None:
        """Whoever finds work and leaves some wakes the next: nobody sleeps while there is work."""
        if pool.idle and not pool.searching and self.policy.has_work(pool.idle[-1]):
            self.parking.wake(pool.idle[-1])

    def _over(self, node: Node, worker: int, onward: bool) -> Node | None:
        """Release what waits for a node that is over, and for all that ends because of it.

        Returns
        -------
        Node or None
            The first released node, started on the worker, if it may go straight on with it.
        """
        follower: Node | None = None
        over = [node]
        while over:
            node = over.pop()
            if node.state != FINISHED:
                self._spoil(node)
            elif node.accesses is not None:
                self.graph.unlink(node, False)
                node.accesses = None
            successors = node.successors
            if successors is not None:
                if node.state == FINISHED and KINDS.get(type(node.value)) != ATOM:
                    self.graph.arrived(node)
                node.successors = None
                for other in successors:
                    other.waiting -= 1
                    if other.waiting:
                        continue
                    if not self._runnable(other):
                        over.append(other)
                    elif onward and follower is None and self._may_follow(other, worker):
                        follower = other
                    else:
                        self._ready(other, worker)
            if node.followers is not None:
                self._release_followers(node, worker, over)
            self.pending -= 1
            scope = node.parent
            scope.pending -= 1
            if node.callbacks is not None:
                self.completed.append(node)
            if not scope.pending and (scope.barriers or scope.node is not None):
                self._scope_is_over(scope, over)
        if self.timed and self.policy.rouses:
            self._rouse()
        if follower is not None:
            ranked = self.policy.ranked or follower.options.priority
            if ranked and not self._may_follow(follower, worker):
                self._ready(follower, worker)  # what was released after it goes before it
                return None
            follower.state = RUNNING
            follower.worker = worker
        return follower

    def _rouse(self) -> None:
        """Wake whoever has work now: what a policy held back may go when a node is over."""
        for pool in self.parking.pools.values():
            for worker in [w for w in pool.idle if self.policy.has_work(w)]:
                self.parking.wake(worker)

    def _spoil(self, node: Node) -> None:
        """Settle a node that did not finish, and what needs its value or its data."""
        if node.state == WAITING:
            (cancelled if node.value is None else doomed)(node)
        let_go(node)
        if node.accesses is not None:
            self.graph.unlink(node, True)
            node.accesses = None
        for other in node.successors or ():
            if other.state == WAITING and not is_past(node, other):
                doom(other, node)
        if node.state == FAILED and not isinstance(node.value, DependencyError):
            node.parent.failures.append(node.value)
        elif node.state == CANCELLED and self.closing and node.value.delivered < 0:
            node.parent.cut = True

    def _release_followers(self, node: Node, worker: int, over: list[Node]) -> None:
        for other in node.followers or ():
            other.waiting -= 1
            if not other.waiting:
                if self._runnable(other):
                    self._ready(other, worker)
                else:
                    over.append(other)
        node.followers = None

    def _scope_is_over(self, scope: Scope, over: list[Node]) -> None:
        """Tell whoever waits for a scope; the task that owns it may be over with it."""
        for barrier in scope.barriers:
            self._open_barrier(barrier)
        scope.barriers = []
        parent = scope.node
        if parent is not None and parent.state == JOINING:
            join(parent, scope)
            over.append(parent)

    def _notify(self, node: Future[Any]) -> None:
        if node.callbacks is not None:
            self.completed.append(node)

    def _open_barrier(self, barrier: Future[Any]) -> None:
        barrier.state = FINISHED
        self._notify(barrier)

    def _may_follow(self, node: Node, worker: int) -> bool:
        """Whether a worker may go straight on with a node that it made ready."""
        policy, devices = self.policy, node.choice.devices  # type: ignore[union-attr]
        if not policy.chains or self.workers[worker] not in devices:
            return False
        if not policy.ranked and not node.options.priority:
            return True
        top = policy.top(worker)
        return top is None or top <= node.options.priority

    def _placed(self, node: Node) -> bool:
        """Choose the variants of a node whose arguments had to be known first."""
        try:
            args = tuple(map(resolve, node.args))
            kwargs = {name: resolve(value) for name, value in (node.kwargs or {}).items()}
            node.choice = node.plan.choice(args, kwargs)
        except LegatoError as error:
            node.value = error
        return node.choice is not None

    def _illegal(self, node: Node, state: int) -> IllegalTransition:
        return IllegalTransition(
            f"a node cannot go from {STATES[node.state]} to {STATES[state]}: {node.story}"
        )
