"""A scheduler without an executor: whoever holds the `Stage` decides what starts and ends when."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from random import Random
from typing import Any

from legato_rt.energy import ConstantPower
from legato_rt.errors import TaskError
from legato_rt.future import FINISHED, READY
from legato_rt.invariants import CheckedScheduler
from legato_rt.machine import Device, Machine
from legato_rt.node import Node, Scope
from legato_rt.placement import Plan
from legato_rt.policy.base import Policy
from legato_rt.site import Site
from legato_rt.task import Options, Task, Variant

WORKERS = ("cpu", "cpu", "accelerator")
KINDS = ("cpu", "accelerator", "both")
TICK_S = 1e-3


def expect(condition: object, message: str) -> None:
    """Raise `AssertionError` unless the condition holds, also under ``python -O``."""
    if not condition:
        raise AssertionError(message)


def body(*args: Any) -> None:
    """What the tasks of a stage would run."""


def _task(kind: str) -> Task[..., Any]:
    made: Task[..., Any] = Task(body, directions={}, name=f"on_{kind}")
    kinds = KINDS[:2] if kind == "both" else (kind,)
    made.variants = tuple(Variant(k, body, None) for k in kinds)
    return made


class Stage:
    """A `CheckedScheduler` on which nodes start and end by hand.

    Parameters
    ----------
    policy : Policy
    workers : sequence of str
        Device of each worker: ``cpu`` or ``accelerator``.
    site : bool
        Whether a policy that predicts is told of the machine.

    Attributes
    ----------
    running : dict of int to Node
        What runs on each worker that is busy.
    awake : set of int
        Workers that have to look for work: at first all of them, later those that are woken.
    started : list of Node
        In the order in which they started.
    """

    def __init__(self, policy: Policy, workers: Sequence[str] = WORKERS, site: bool = True) -> None:
        names = list(dict.fromkeys(workers))
        if site and policy.timed:
            power = ConstantPower(10.0, 1.0)
            counts = {name: list(workers).count(name) for name in names}
            devices = tuple(Device(n, n, (n,), counts[n], power) for n in names)
            policy.equip(Site(Machine(devices)))
        self.policy = policy
        self.workers = list(workers)
        self.scheduler = CheckedScheduler(policy, self.workers)
        self.scope = Scope(self, None)
        self.running: dict[int, Node] = {}
        self.awake = set(range(len(self.workers)))
        self.started: list[Node] = []
        self.nodes: list[Node] = []
        self._devices = {name: (name,) for name in names}
        self._plans: dict[str, Plan] = {}
        self._now = 0.0

    def node(self, kind: str = "both", priority: int = 0, futures: Sequence[Node] = ()) -> Node:
        """Make a node for workers of one kind of device, or of both."""
        if kind not in self._plans:
            self._plans[kind] = Plan(_task(kind), self._devices, False)
        plan, options, caller = self._plans[kind], Options(priority), sys._getframe()
        made = Node(self.scope, len(self.nodes), plan, tuple(futures), None, options, caller)
        made.choice = plan.fixed
        made.holes = bool(futures)
        self.nodes.append(made)
        return made

    def add(self, node: Node, data: Sequence[tuple[Any, int]] = ()) -> Node:
        """Submit a node with the futures that are its arguments, and accesses to data."""
        self.tick()
        self.scheduler.submit(node, list(node.args) or None, list(data) or None)
        self.obey()
        return node

    def submit(
        self,
        kind: str = "both",
        priority: int = 0,
        futures: Sequence[Node] = (),
        data: Sequence[tuple[Any, int]] = (),
    ) -> Node:
        """Make a node and submit it."""
        return self.add(self.node(kind, priority, futures), data)

    def next(self, worker: int) -> Node | None:
        """Let an idle worker look for work."""
        self.tick()
        self.awake.discard(worker)
        node = self.scheduler.next(worker)
        self._run(worker, node)
        return node

    def finish(self, worker: int, onward: bool = True) -> Node | None:
        """End what runs on a worker."""
        return self._end(worker, self.running.pop(worker), None, onward)

    def fail(self, worker: int, onward: bool = True) -> Node | None:
        """Let what runs on a worker raise."""
        node = self.running.pop(worker)
        device = self.workers[worker]
        error = TaskError(
            f"{node.title} fails", task=node.title, where=node.where, variant="", device=device
        )
        return self._end(worker, node, error, onward)

    def cancel(self, node: Node) -> bool:
        """Cancel a node."""
        self.tick()
        done = self.scheduler.cancel(node, len(self.nodes))
        self.obey()
        return done

    def play(self, random: Random, failures: float = 0.0) -> None:
        """Run what there is in random order; only workers that were woken look for work."""
        while actions := [*self.awake, *self.running]:
            worker = random.choice(actions)
            if worker not in self.running:
                self.next(worker)
            elif random.random() < failures:
                self.fail(worker)
            else:
                self.finish(worker)

    def settled(self) -> None:
        """Expect that every node is over."""
        lost = [node.story for node in self.nodes if node.state < FINISHED]
        expect(not lost, f"{type(self.policy).__name__} lost {len(lost)} nodes: {lost[:3]}")
        expect(not self.scheduler.pending, f"{self.scheduler.pending} nodes are still counted")

    def tick(self) -> None:
        """Let time go on, and tell the policy."""
        self._now += TICK_S
        if self.scheduler.timed:
            self.policy.now = self._now

    def obey(self) -> None:
        """Note whom the scheduler wakes."""
        self.awake.update(self.scheduler.wakes)
        self.scheduler.wakes.clear()
        self.scheduler.completed.clear()

    def _end(self, worker: int, node: Node, error: TaskError | None, onward: bool) -> Node | None:
        self.tick()
        if error is None:
            following = self.scheduler.finish(node, node.seq, worker, onward)
        else:
            following = self.scheduler.fail(node, error, worker, onward)
        self._run(worker, following)
        if not onward:
            self.awake.add(worker)
        return following

    def _run(self, worker: int, node: Node | None) -> None:
        self.obey()
        if node is None:
            return
        device = self.workers[worker]
        choice = node.choice
        expect(
            choice is not None and device in choice.devices,
            f"{type(self.policy).__name__} gave a worker of {device} what it cannot run: "
            f"{node.story}",
        )
        expect(node not in self.started, f"started a second time: {node.story}")
        expect(node.state != READY, f"given out and still ready: {node.story}")
        self.running[worker] = node
        self.started.append(node)
