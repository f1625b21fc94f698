"""Where the data of a recorded graph lies in virtual time, and what it takes to move it.

A piece of data starts in host memory.  A task that is placed on a device has what it reads brought
to that device's memory, where it stays until somebody writes it elsewhere.  Copies do not slow one
another down.
"""

from __future__ import annotations

from legato_rt.formats.recorded import GraphRecord
from legato_rt.machine import HOST, Device, Machine
from legato_rt.node import Node


class Shipping:
    """Fulfils `Whereabouts` for the nodes of a recorded graph, numbered as its tasks.

    Attributes
    ----------
    joules : dict of str to float
        Energy of the copies to each device.
    """

    moves = True

    def __init__(self, machine: Machine, record: GraphRecord) -> None:
        self._machine = machine
        self._tasks = record.tasks
        self._there: dict[str, dict[str, float]] = {}
        self.joules: dict[str, float] = {}

    def transfer(self, node: Node, device: Device, now: float) -> tuple[float, float]:
        """See `Whereabouts.transfer`."""
        ready, joules = now, 0.0
        for name, size in self._tasks[node.seq].reads:
            at, cost = self._fetched(name, size, device.memory, now)
            ready = max(ready, at)
            joules += cost
        return ready - now, joules

    def bring(self, node: Node, device: Device, now: float) -> None:
        """See `Whereabouts.bring`."""
        for name, size in self._tasks[node.seq].reads:
            at, joules = self._fetched(name, size, device.memory, now)
            self._there.setdefault(name, {HOST: 0.0}).setdefault(device.memory, at)
            if joules:
                self.joules[device.name] = self.joules.get(device.name, 0.0) + joules

    def arrival(self, node: Node, device: Device, now: float) -> float:
        """When the data of a node is there, if it was not brought before now."""
        self.bring(node, device, now)
        places = (self._there[name][device.memory] for name, _ in self._tasks[node.seq].reads)
        return max(places, default=now)

    def wrote(self, node: Node, device: Device, now: float) -> None:
        """A node is over: what it wrote is on its device only."""
        for name, _ in self._tasks[node.seq].writes:
            self._there[name] = {device.memory: now}

    def _fetched(self, name: str, size: float, memory: str, now: float) -> tuple[float, float]:
        """When a piece of data would be in a memory, and the joules of the copy."""
        copies = self._there.get(name)
        if copies is None:
            copies = {HOST: 0.0}
        if memory in copies:
            return copies[memory], 0.0
        best, source = min(
            (max(since, now) + self._machine.transfer_s(size, other, memory), other)
            for other, since in copies.items()
        )
        return best, self._machine.transfer_j(size, source, memory) or 0.0
