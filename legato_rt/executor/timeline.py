"""Virtual time: bodies that take as long as a cost model says, run by the scheduler itself."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from legato_rt.costs import CostModel
from legato_rt.draws import draw, draw_factor
from legato_rt.errors import LegatoError, UsageError
from legato_rt.machine import Device
from legato_rt.node import Node
from legato_rt.placement import Candidate
from legato_rt.scheduler import Scheduler
from legato_rt.site import Site, Whereabouts


@dataclass(frozen=True, slots=True)
class Disturbance:
    """How reality departs from what the costs say, the same under the same seed.

    Attributes
    ----------
    noise : float
        Standard deviation of the logarithm of each run's time.
    stale : mapping of str to float, or None
        For devices by name, how many times longer everything takes.
    throttled : sequence of (float, str, float)
        From a time on, a device runs at a share of its speed: (seconds, device, share).
    failures : float
        The share of runs that fail.
    seed : int
    """

    noise: float = 0.0
    stale: dict[str, float] | None = None
    throttled: Sequence[tuple[float, str, float]] = ()
    failures: float = 0.0
    seed: int = 0

    def factor(self, node: Node, device: str, now: float) -> float:
        """How many times longer than expected a run takes that starts now."""
        factor = (self.stale or {}).get(device, 1.0)
        for since, name, share in self.throttled:
            if name == device and since <= now:
                factor /= share
        if self.noise:
            factor *= draw_factor(self.noise, self.seed, node.seq)
        return factor

    def fails(self, node: Node) -> bool:
        """Whether a run fails."""
        return self.failures > 0 and draw(self.seed, node.seq, 3) < self.failures


@dataclass(slots=True)
class Run:
    """A body in virtual time.

    Attributes
    ----------
    start_s, stop_s : float
        When the worker is taken, and when it is free again.
    waited_s : float
        Of that, the time until the data was there.
    joules : float
        What the worker draws from when the data is there until the end.
    """

    node: Node
    worker: int
    start_s: float
    stop_s: float
    waited_s: float
    joules: float
    ok: bool = True


class Carriage(Whereabouts, Protocol):
    """Moves data in virtual time.

    Attributes
    ----------
    joules : dict of str to float
        Energy of the copies to each device.
    """

    joules: dict[str, float]

    def arrival(self, node: Node, device: Device, now: float) -> float:
        """When the data of a node that starts now is there."""

    def wrote(self, node: Node, device: Device, now: float) -> None:
        """A node is over: what it wrote is on its device only."""


class Timeline:
    """Runs nodes in virtual time.

    Parameters
    ----------
    scheduler : Scheduler
    site : Site
        Its costs are told of every run.
    costs : CostModel
        What bodies really take, but for the disturbance.
    data : Carriage
    disturbance : Disturbance, optional

    Attributes
    ----------
    devices : list of Device
        The device of each worker.
    now : float
        Virtual seconds since the start.
    runs : list of Run
        All that are over, in the order of their ends.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        site: Site,
        costs: CostModel,
        data: Carriage,
        disturbance: Disturbance | None = None,
    ) -> None:
        devices = {device.name: device for device in site.machine.devices}
        self.scheduler = scheduler
        self.devices = [devices[name] for name in scheduler.workers]
        self.beliefs = site.costs
        self.costs = costs
        self.data = data
        self.disturbance = disturbance or Disturbance()
        self.now = 0.0
        self.runs: list[Run] = []
        self._events: list[tuple[float, int, Run]] = []
        self._order = 0

    def open(self) -> None:
        """Let every worker look for work once."""
        for worker in range(len(self.devices)):
            self._next(worker)
        self.settle()

    def settle(self) -> None:
        """Start all that can start now."""
        wakes = self.scheduler.wakes
        while wakes:
            self._next(wakes.pop())

    def step(self) -> bool:
        """Go on to the next end of a body, and all at the same time; false if there is none."""
        events = self._events
        if not events:
            return False
        self.now = events[0][0]
        free: list[int] = []
        while events and events[0][0] <= self.now:
            run = heapq.heappop(events)[2]
            self._end(run)
            free.append(run.worker)
        for worker in free:
            self._next(worker)
        self.settle()
        return True

    def _next(self, worker: int) -> None:
        self._tell_time()
        node = self.scheduler.next(worker)
        if node is not None:
            self._start(node, worker)

    def _tell_time(self) -> None:
        if self.scheduler.timed:
            self.scheduler.policy.now = self.now

    def _start(self, node: Node, worker: int) -> None:
        device = self.devices[worker]
        choice, placed = node.choice, node.placed
        assert choice is not None
        node.variant = choice.by_device[device.name]
        point = placed.point if placed is not None and placed.device == device.name else ""
        cost = self.costs.estimate(node, device, node.variant, point, 1)
        if cost is None:
            raise UsageError(f"no time is given for {node.title} on {device.name}")
        begin = max(self.data.arrival(node, device, self.now), self.now)
        factor = self.disturbance.factor(node, device.name, self.now)
        stop = begin + cost.seconds * factor
        run = Run(node, worker, self.now, stop, begin - self.now, cost.joules * factor)
        self._order += 1
        heapq.heappush(self._events, (stop, self._order, run))

    def _end(self, run: Run) -> None:
        self._tell_time()
        node, placed = run.node, run.node.placed
        run.ok = not self.disturbance.fails(node)
        self.runs.append(run)
        self.data.wrote(node, self.devices[run.worker], self.now)
        if placed is not None and run.ok:
            self._learn(run, placed)
        if run.ok:
            self.scheduler.finish(node, None, run.worker, onward=False)
        else:
            error = LegatoError(f"{node.title} was made to fail")
            self.scheduler.fail(node, error, run.worker, onward=False)

    def _learn(self, run: Run, placed: Candidate) -> None:
        assert run.node.variant is not None
        self.beliefs.observe(
            run.node,
            self.devices[run.worker],
            run.node.variant,
            placed.point,
            placed.width,
            run.stop_s - run.start_s - run.waited_s,
            run.joules,
        )
