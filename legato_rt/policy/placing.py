"""Base of the policies that predict: where would each ready task be done when, and at what cost?

When a task becomes ready, `Placing` lists every `Candidate`, a device with one of its operating
points, and a subclass chooses one in `choose`.  The task waits in that device's queue; whichever of
the device's workers is free first takes it.  Nothing is stolen: a task that would be better off
elsewhere was placed there.

What nothing is known about is tried first, one run at a time; and what looked worse is tried again
now and then, the less often the worse it looked, because devices change.
"""

from __future__ import annotations

from collections.abc import Sequence

from legato_rt.costs import Estimate
from legato_rt.draws import draw
from legato_rt.energy import ConstantPower
from legato_rt.machine import Device, Machine
from legato_rt.node import Node
from legato_rt.placement import Candidate
from legato_rt.policy.base import Devices, Policy
from legato_rt.policy.lanes import Lanes
from legato_rt.site import Site

GUESS_S = 1e-3
"""What a task is taken to last while nothing at all is known."""

RISK = 8
"""How much rarer a candidate is tried again that costs more: by its ratio to this power."""

Trial = tuple[str, str, str, str]


class Placing(Policy):
    """Places each ready task on a device; a subclass writes `choose`.

    Attributes
    ----------
    tunes : bool
        Whether operating points other than the usual one are candidates.
    site : Site
        The machine, the costs, the objective; given by `equip`.
    lanes : dict of str to Lanes
        What is known of each device.
    """

    timed = True
    chains = False
    tunes = False

    site: Site
    _is_equipped = False

    def choose(self, node: Node, candidates: Sequence[Candidate]) -> Candidate:
        """Choose where a ready node runs; candidates are never empty."""
        raise NotImplementedError

    def regret(self, candidate: Candidate) -> float:
        """What is lost if a candidate turns out as expected; what costs little is tried more."""
        return candidate.seconds

    def urgency(self, node: Node) -> float:
        """Among nodes of one priority on one device the more urgent starts first."""
        return 0.0

    def equip(self, site: Site) -> None:
        """See `Policy.equip`."""
        self.site = site
        self._is_equipped = True

    def attach(self, workers: Sequence[str]) -> None:
        """See `Policy.attach`."""
        super().attach(workers)
        names = list(dict.fromkeys(workers))
        if not self._is_equipped:
            self.equip(Site(Machine(tuple(_unknown(name, workers) for name in names))))
        devices = {device.name: device for device in self.site.machine.devices}
        self.lanes = {
            name: Lanes(devices[name], [i for i, w in enumerate(self.workers) if w == name])
            for name in names
        }
        self._neighbours = {
            name: [o for o in names if devices[o].shares == name or devices[name].shares == o]
            for name in names
        }
        self._trials: set[Trial] = set()
        self._typical_s = GUESS_S

    # -- placing ----------------------------------------------------------------------------

    def push(self, node: Node, devices: Devices, by: int) -> int | None:
        """Place a ready node and queue it there."""
        candidates = self.candidates(node, devices)
        chosen = candidates[0]
        if len(candidates) > 1:
            chosen = self._trial(node, candidates) or self.choose(node, candidates)
        node.placed = chosen
        lanes = self.lanes[chosen.device]
        lanes.push(node, self.urgency(node))
        self.site.data.bring(node, lanes.device, self.now)
        return None

    def candidates(self, node: Node, devices: Devices) -> list[Candidate]:
        """Every device and operating point on which a node could run, as things stand now."""
        site, choice = self.site, node.choice
        assert choice is not None
        found: list[Candidate] = []
        for name, lanes in self.lanes.items():
            if name not in devices:
                continue
            device, variant = lanes.device, choice.by_device[name]
            free_s, worker = lanes.free(self.now)
            for other in self._neighbours[name]:
                free_s = max(free_s, self.lanes[other].idle(self.now))
            transfer_s, transfer_j = site.data.transfer(node, device, self.now)
            start_s = free_s + transfer_s
            if site.prefetches:
                start_s = max(free_s, self.now + transfer_s)
            points = device.points if self.tunes and device.points else (device.point(),)
            for point in points:
                known = site.costs.estimate(node, device, variant, point.name, 1)
                seconds, joules, samples = self._expected(known, point.active_w)
                joules += transfer_j
                found.append(
                    Candidate(
                        name, worker, variant, point.name, 1,
                        start_s, transfer_s, seconds, joules, samples,
                    )
                )  # fmt: skip
        return found

    def _expected(self, known: Estimate | None, active_w: float) -> tuple[float, float, int | None]:
        if known is None:
            return self._typical_s, self._typical_s * active_w, -1
        self._typical_s += 0.1 * (known.seconds - self._typical_s)
        return known.seconds, known.joules, known.samples

    def _trial(self, node: Node, candidates: Sequence[Candidate]) -> Candidate | None:
        """A candidate to learn from instead of the best one, if it is time for that."""
        if any(c.samples == -1 for c in candidates):
            unknown = [c for c in candidates if c.samples == -1]
            for candidate in sorted(unknown, key=lambda c: (c.joules, c.start_s)):
                trial = _trial_of(node, candidate)
                if trial not in self._trials:
                    self._trials.add(trial)
                    return candidate
        known = [c for c in candidates if c.samples is not None and c.samples >= 0]
        if len(known) < 2:
            return None
        least = min(max(c.samples or 0, 1) for c in known)
        chance = draw(self.site.seed, node.seq) / max(0.02, 0.1 / least**0.5)
        return self._again(known, chance) if chance < 1 else None

    def _again(self, known: Sequence[Candidate], chance: float) -> Candidate:
        """Draw a candidate to run again: rather one with few runs, and one that costs little."""
        costs = [self.regret(c) for c in known]
        best = max(min(costs), 1e-300)
        shares = [(best / max(cost, best)) ** RISK for cost in costs]
        shares = [s / max(c.samples or 0, 1) ** 0.5 for s, c in zip(shares, known, strict=True)]
        left = chance * sum(shares)
        for candidate, share in zip(known, shares, strict=True):
            left -= share
            if left < 0:
                return candidate
        return known[-1]

    # -- queues -----------------------------------------------------------------------------

    def started(self, node: Node, worker: int) -> None:
        """See `Policy.started`."""
        if node.placed is not None:
            self.lanes[node.placed.device].started(node, self.now)

    def finished(self, node: Node) -> None:
        """See `Policy.finished`."""
        if node.placed is not None:
            self.lanes[node.placed.device].finished(node, self.now)
            self._trials.discard(_trial_of(node, node.placed))

    def pop(self, worker: int) -> Node | None:
        """Take the next node of the worker's device."""
        return self.lanes[self.workers[worker]].pop()

    def top(self, worker: int) -> int | None:
        """See `Policy.top`."""
        head = self.lanes[self.workers[worker]].head()
        return head.options.priority if head is not None else None

    def has_work(self, worker: int) -> bool:
        """See `Policy.has_work`."""
        return self.lanes[self.workers[worker]].head() is not None

    def drain(self) -> list[Node]:
        """See `Policy.drain`."""
        found: list[Node] = []
        for lanes in self.lanes.values():
            while (node := lanes.pop()) is not None:
                found.append(node)
        return found


def _trial_of(node: Node, candidate: Candidate) -> Trial:
    return node.task.name, candidate.device, candidate.variant.name, candidate.point


def _unknown(name: str, workers: Sequence[str]) -> Device:
    return Device(name, name, (name,), list(workers).count(name), ConstantPower(1.0, 0.0))
