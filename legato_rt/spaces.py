"""Spaces, regions and blocks: stretches of memory, cut so that no tracked view cuts a block.

::

    array a (16 x 16)          view a[:8]        view a[4:12]
        │                          │                  │
      Space ────────────────── Region ─────────── Region
        │                        │    └────┐     ┌────┘ └───┐
        └── blocks (disjoint)   a[0:4]    a[4:8]           a[8:12]

A `Space` is one stretch of memory; a `Region` is the set of bytes of a view, kept as the disjoint
blocks it consists of; a `Block` is a set of bytes that no region cuts.  A view that overlaps a
block in part splits it.  Other mutable objects are a space with one block, found by identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from legato_rt.regions import Extent, Grid, Layout

_FEW = 16


class Block:
    """Bytes that every region holds either all or none of.

    Attributes
    ----------
    extent : Extent or None
        Where the bytes are; `None` for an object tracked by identity.
    histories : dict
        For each scope of submission, who reads and writes the block (see `legato_rt.graph`).
    regions : list of Region
        The regions that this block is part of.
    home : bool
        Whether host memory holds the current bytes.
    replicas : dict of Replica to None
        Copies elsewhere that hold the current bytes (see `legato_rt.memory`).
    """

    __slots__ = ("extent", "histories", "home", "regions", "replicas")

    def __init__(self, extent: Extent | None) -> None:
        self.extent = extent
        self.histories: dict[Any, Any] = {}
        self.regions: list[Region] = []
        self.home = True
        self.replicas: dict[Any, None] = {}

    @property
    def idle(self) -> bool:
        """Whether no unfinished task uses the block, and no failure in it is still to be told."""
        return all(history.idle for history in self.histories.values())

    @property
    def used(self) -> bool:
        """Whether an unfinished task reads or writes the block."""
        return any(past.writer is not None or past.readers for past in self.histories.values())

    def split_off(self, inside: Extent, outside: Extent) -> Block:
        """Shrink to ``inside``; a new block with the same past and regions gets ``outside``."""
        self.extent = inside
        other = Block(outside)
        other.histories = {scope: past.copy() for scope, past in self.histories.items()}
        other.regions = list(self.regions)
        other.home, other.replicas = self.home, dict(self.replicas)
        for region in self.regions:
            region.blocks = (*region.blocks, other)
        return other


class Region:
    """The bytes of a view, as disjoint blocks.

    Attributes
    ----------
    space : Space or None
        `None` once the space was forgotten.
    coarse : bool
        Whether the blocks hold more than the view's bytes, because exact was too hard.
    pending : int
        For an object tracked by identity, how many unfinished tasks use it.
    """

    __slots__ = ("blocks", "coarse", "pending", "space")

    def __init__(self, space: Space, blocks: list[Block], coarse: bool = False) -> None:
        self.space: Space | None = space
        self.blocks = tuple(blocks)
        self.coarse = coarse
        self.pending = 0
        for block in blocks:
            block.regions.append(self)


class Space:
    """One stretch of memory (or one object), its blocks and the regions seen in it.

    Attributes
    ----------
    owner : object or None
        The scope whose tasks own the data (see `legato_rt.graph`).
    forms : list
        Under what the registry knows views of it, to be dropped with it.
    item : object or None
        For an object tracked by identity, the object, held while tasks use it.
    exact : bool
        Whether no two blocks share a byte; they may only where exact was too hard.
    """

    __slots__ = (
        "_grid",
        "blocks",
        "exact",
        "forms",
        "item",
        "owner",
        "periods",
        "regions",
        "start",
        "stop",
    )

    def __init__(self, start: int = 0, stop: int = 0, periods: tuple[int, ...] = ()) -> None:
        self.start = start
        self.stop = stop
        self.periods = periods
        self.owner: Any = None
        self.item: object = None
        self.blocks: list[Block] = []
        self.regions: dict[Layout | None, Region] = {}
        self.forms: list[Any] = []
        self._grid: Grid | None = None
        self.exact = True

    @property
    def idle(self) -> bool:
        """Whether no unfinished task uses any of it."""
        return all(block.idle for block in self.blocks)

    def region(self, layout: Layout | None) -> Region:
        """The region of one layout; blocks are split when it is first seen."""
        found = self.regions.get(layout)
        if found is None:
            if layout is None:
                found = Region(self, [])
            else:
                found = Region(self, *self._cover(Extent(layout)))
            self.regions[layout] = found
        return found

    def touching(self, layout: Layout) -> list[Block]:
        """Blocks that may share bytes with a layout, without splitting any."""
        known = self.regions.get(layout)
        if known is not None:
            return list(known.blocks)
        extent = Extent(layout)
        near = (self.blocks[i] for i in self._near(extent))
        return [b for b in near if b.extent is None or b.extent.overlaps(extent) is not False]

    def _near(self, extent: Extent) -> Sequence[int]:
        """Indices of blocks that may overlap; few blocks are looked through without an index."""
        if self._grid is None:
            if len(self.blocks) <= _FEW:
                return range(len(self.blocks))
            self._grid = Grid(self.start, self.periods)
            for block in self.blocks:
                assert block.extent is not None
                self._grid.append(block.extent)
        return self._grid.near(extent)

    def adopt(self, other: Space) -> None:
        """Take over another space: both turned out to be parts of one stretch."""
        for block in other.blocks:
            self._add(block)
        for layout, region in other.regions.items():
            region.space = self
            self.regions[layout] = region
        self.owner = self.owner or other.owner
        self.exact = self.exact and other.exact
        self.forms += other.forms
        other.blocks, other.regions, other.forms = [], {}, []

    def forget(self) -> None:
        """Disown all regions, so that views known by identity are looked up anew."""
        for region in self.regions.values():
            region.space = None

    def _cover(self, extent: Extent) -> tuple[list[Block], bool]:
        """Blocks that together are ``extent``, and whether they hold more than that."""
        found: list[Block] = []
        coarse = False
        for index in self._near(extent):
            block = self.blocks[index]
            assert block.extent is not None
            overlap = block.extent.overlaps(extent)
            if overlap is False:
                continue
            parts = block.extent.split(extent) if overlap else None
            if parts is None:
                coarse = True
            elif parts[0] is not None and parts[1] is not None:
                other = block.split_off(parts[0], parts[1])
                if self._grid is not None:
                    self._grid.replace(index, parts[0])
                self._add(other)
            found.append(block)
        rest = self._remainder(extent, found, coarse)
        if rest is not None:
            block = Block(rest)
            self._add(block)
            found.append(block)
        return found, coarse

    def _remainder(self, extent: Extent, blocks: list[Block], coarse: bool) -> Extent | None:
        """What of ``extent`` no block holds; more than that where exact is too hard."""
        extents = [block.extent for block in blocks if block.extent is not None]
        sizes = [other.size() for other in extents]
        size = extent.size()
        known = size is not None and None not in sizes
        if known and self.exact and not coarse and sum(s for s in sizes if s) == size:
            return None
        rest = extent
        for other in extents:
            parts = rest.split(other)
            if parts is None:
                self.exact = False
            elif parts[1] is None:
                return None
            else:
                rest = parts[1]
        return rest

    def _add(self, block: Block) -> None:
        assert block.extent is not None
        self.blocks.append(block)
        if self._grid is not None:
            self._grid.append(block.extent)
