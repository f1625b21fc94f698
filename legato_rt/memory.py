"""Which memory node holds a valid copy of which block: coherence without a single copy made here.

Host memory is where data lives; every other memory node holds dense copies of whole views
(`Replica`).  Validity is kept per block, because views overlap::

    block          host    replicas
    at rest        valid   none
    read on a      valid   a
    written on a   stale   a            (modified: the only valid copy)
    read on host   valid   a
    written there  valid   none

A block is valid somewhere at any time.  The directory is pure: it changes the state and returns the
steps that make it true, in order; the caller carries them out before anybody else looks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

from legato_rt.access import OUT
from legato_rt.errors import DeviceError, DeviceOutOfMemory
from legato_rt.regions import Extent
from legato_rt.spaces import Block, Region


class Replica:
    """A dense copy of one view on a memory node.

    Attributes
    ----------
    key : hashable
        The view's form: two views of the same bytes in another shape are two replicas.
    array : object or None
        The device's own array, once it was allocated.
    view : ndarray or None
        The host view to write back to; held only while host memory is stale, so that a clean
        replica keeps nobody's memory alive.
    pins : int
        Running tasks that use it.
    """

    __slots__ = ("array", "key", "memory", "nbytes", "pins", "region", "view")

    def __init__(self, memory: MemoryNode, key: Hashable, region: Region, nbytes: int) -> None:
        self.memory = memory
        self.key = key
        self.region = region
        self.nbytes = nbytes
        self.array: Any = None
        self.view: Any = None
        self.pins = 0


class MemoryNode:
    """The memory of one device.

    Attributes
    ----------
    limit_bytes : int or None
        How much it may hold; `None` for no limit of ours.
    kind : str
        Memories of one kind copy directly from each other.
    used_bytes : int
    replicas : OrderedDict
        By key, least recently used first.
    """

    def __init__(self, name: str, limit_bytes: int | None = None, kind: str = "") -> None:
        self.name = name
        self.kind = kind
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self.replicas: OrderedDict[Hashable, Replica] = OrderedDict()


@dataclass(frozen=True, slots=True)
class Allocate:
    """Make the array of a replica, like the view."""

    replica: Replica
    view: Any


@dataclass(frozen=True, slots=True)
class Upload:
    """Copy a view from host memory to its replica."""

    replica: Replica
    view: Any


@dataclass(frozen=True, slots=True)
class Download:
    """Copy a part of a replica to host memory; ``extents`` is `None` for the whole view.

    The extents are those of the moment of decision: a block may be split before it is copied.
    """

    replica: Replica
    view: Any
    extents: tuple[Extent, ...] | None


@dataclass(frozen=True, slots=True)
class Peer:
    """Copy a replica to another of the same form on another memory node."""

    source: Replica
    target: Replica


@dataclass(frozen=True, slots=True)
class Drop:
    """Free the array of a replica."""

    replica: Replica


Step = Allocate | Upload | Download | Peer | Drop


class Directory:
    """Decides which copies must be made; knows no device.

    Attributes
    ----------
    replicas : dict of Replica to None
        All that exist.
    """

    def __init__(self) -> None:
        self.replicas: dict[Replica, None] = {}

    def acquire(
        self, memory: MemoryNode, key: Hashable, region: Region, view: Any, mode: int
    ) -> tuple[Replica, list[Step]]:
        """Make a view readable on a memory node, and pin it there; `commit` or `abandon` follows.

        Parameters
        ----------
        key : hashable
            The form of the view.
        view : ndarray
            The host array.
        mode : int
            What the task does with it.

        Raises
        ------
        DeviceOutOfMemory
            If the memory node is full of what running tasks use.
        DeviceError
            If the exact bytes of the view are not known.
        """
        if region.coarse:
            raise DeviceError("the overlap of a view with others is too hard to tell for a copy")
        steps: list[Step] = []
        replica = memory.replicas.get(key)
        allocation: list[Step] = []
        if replica is None:
            steps += self.make_room(memory, view.nbytes)
            replica = memory.replicas[key] = Replica(memory, key, region, view.nbytes)
            memory.used_bytes += replica.nbytes
            self.replicas[replica] = None
            allocation = [Allocate(replica, view)]
        memory.replicas.move_to_end(key)
        replica.pins += 1
        fill: list[Step] = []
        if mode != OUT and not all(replica in block.replicas for block in region.blocks):
            fill = self._fill(replica, view)
        # An allocation that fails evicts more: nothing may still be on its way home by then.
        return replica, [*steps, *fill[:-1], *allocation, *fill[-1:]]

    def commit(self, replica: Replica, view: Any, mode: int) -> None:
        """The steps of `acquire` were carried out: the replica is valid, alone if it is written."""
        blocks = replica.region.blocks
        if mode & OUT:
            stale = {other for block in blocks for other in block.replicas}
            for block in blocks:
                block.replicas = {replica: None}
                block.home = False
            self._let_go(stale)
        else:
            for block in blocks:
                block.replicas[replica] = None
        if not all(block.home for block in blocks):
            replica.view = view

    def abandon(self, replica: Replica) -> None:
        """The array of a new replica could not be made: forget it."""
        self._remove(replica)

    def bring_home(self, region: Region, mode: int) -> list[Step]:
        """Make a region valid in host memory; a write there makes all replicas stale."""
        steps: list[Step] = []
        if mode != OUT or region.coarse:
            steps = self._home(region.blocks)
        if mode & OUT:
            stale = {replica for block in region.blocks for replica in block.replicas}
            for block in region.blocks:
                block.home = True
                block.replicas = {}
            self._let_go(stale)
        return steps

    def bring_all_home(self) -> list[Step]:
        """Make everything valid in host memory but what running tasks may be writing."""
        steps: list[Step] = []
        for replica in self.replicas:
            if not replica.pins:
                blocks = replica.region.blocks
                steps += self._home(b for b in blocks if not any(r.pins for r in b.replicas))
        return steps

    def make_room(self, memory: MemoryNode, nbytes: int) -> list[Step]:
        """Evict what was not used longest, until ``nbytes`` more fit.

        Raises
        ------
        DeviceOutOfMemory
        """
        pinned = sum(r.nbytes for r in memory.replicas.values() if r.pins)
        if memory.limit_bytes is not None and pinned + nbytes > memory.limit_bytes:
            raise DeviceOutOfMemory(
                f"{memory.name} has {memory.limit_bytes} bytes, of which running tasks hold "
                f"{pinned}: {nbytes} more do not fit"
            )
        steps: list[Step] = []
        for replica in [r for r in memory.replicas.values() if r.region.space is None]:
            if not replica.pins:
                steps += self._evict(replica)
        if memory.limit_bytes is None:
            return steps
        for replica in list(memory.replicas.values()):
            if memory.used_bytes + nbytes <= memory.limit_bytes:
                break
            if not replica.pins:
                steps += self._evict(replica)
        return steps

    def evict_idle(self, memory: MemoryNode) -> list[Step]:
        """Evict all that no running task uses."""
        steps: list[Step] = []
        for replica in list(memory.replicas.values()):
            if not replica.pins:
                steps += self._evict(replica)
        return steps

    def _fill(self, replica: Replica, view: Any) -> list[Step]:
        blocks = replica.region.blocks
        shared = set(blocks[0].replicas).intersection(*(b.replicas for b in blocks[1:]))
        for source in shared if not all(block.home for block in blocks) else ():
            if source.key == replica.key and source.memory.kind == replica.memory.kind:
                return [Peer(source, replica)]
        return [*self._home(blocks), Upload(replica, view)]

    def _home(self, blocks: Iterable[Block]) -> list[Step]:
        wanted: dict[Replica, list[Block]] = {}
        for block in blocks:
            if not block.home:
                wanted.setdefault(next(iter(block.replicas)), []).append(block)
                block.home = True
        steps: list[Step] = []
        for replica, found in wanted.items():
            whole = all(replica in block.replicas for block in replica.region.blocks)
            if whole:
                for block in replica.region.blocks:
                    block.home = True
            extents = tuple(b.extent for b in found if b.extent is not None)
            steps.append(Download(replica, replica.view, None if whole else extents))
            brought = replica.region.blocks if whole else found
            self._let_go({other for block in brought for other in block.replicas})
        return steps

    @staticmethod
    def _let_go(replicas: Iterable[Replica]) -> None:
        """Hold no host view where nothing is left to be written back to it."""
        for replica in replicas:
            if all(block.home or replica not in block.replicas for block in replica.region.blocks):
                replica.view = None

    def _evict(self, replica: Replica) -> list[Step]:
        blocks = replica.region.blocks
        alone = [b for b in blocks if not b.home and list(b.replicas) == [replica]]
        steps = self._home(alone)
        for block in blocks:
            block.replicas.pop(replica, None)
        self._remove(replica)
        steps.append(Drop(replica))
        return steps

    def _remove(self, replica: Replica) -> None:
        memory = replica.memory
        memory.used_bytes -= replica.nbytes
        del memory.replicas[replica.key]
        del self.replicas[replica]
