"""Coherence, checked in every state that it can reach.

A few overlapping views of four bytes are used on two devices and on the host in every order.  A
state is what the directory knows: blocks, who holds them, replicas and their age.  The walk ends
when no operation leads to a state that was not seen, and in each of them whatever counts as valid
must have the bytes that a sequential program would have.  So this covers sequences of any length.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import legato_rt as lrt
from legato_rt import In, InOut, Out
from legato_rt.access import IN, INOUT, OUT
from legato_rt.data import Registry
from legato_rt.devices.null import backend
from legato_rt.errors import DeviceError, DeviceOutOfMemory
from legato_rt.executor.transfers import Transfers
from legato_rt.memory import MemoryNode

CELLS = 4
DEVICES = ("left", "right")


@lrt.task
def reads(x: In[Any]) -> None: ...


@lrt.task
def writes(x: Out[Any]) -> None: ...


@lrt.task
def updates(x: InOut[Any]) -> None: ...


TASKS = {IN: reads, OUT: writes, INOUT: updates}
Op = tuple[Any, ...]


class Standing:
    """A node as far as transfers look at it; a parent, so that no other waits for its end."""

    choice = None
    scope = "of children"

    def __init__(self, task: Any) -> None:
        self.task = task


class Memory:
    """The null device's memory, which can be made to be full, or to refuse, a number of times."""

    def __init__(self) -> None:
        self.real = backend.open(backend.discover()[0]).memory  # type: ignore[attr-defined]
        self.full = 0
        self.refuses = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def allocate(self, view: Any) -> Any:
        if self.refuses:
            self.refuses -= 1
            raise DeviceError("refused")
        if self.full:
            self.full -= 1
            raise DeviceOutOfMemory("full")
        array = self.real.allocate(view)
        array[...] = 255
        return array


class World:
    """The part under test, and what the bytes must be."""

    def __init__(self, forms: tuple[Any, ...], limit_bytes: int | None) -> None:
        self.base = np.arange(CELLS, dtype=np.uint8)
        self.truth = self.base.copy()
        cells = np.arange(CELLS)
        self.views = [self.base[form] for form in forms]
        self.cells = [cells[form] for form in forms]
        self.nodes = {name: MemoryNode(name, limit_bytes) for name in DEVICES}
        self.memories = {name: Memory() for name in DEVICES}
        self.registry = Registry()
        pairs = {name: (self.memories[name], self.nodes[name]) for name in DEVICES}
        self.transfers = Transfers(self.registry, threading.Lock(), pairs, False)
        self.forms: dict[Any, int] = {}
        self.seen: list[int] = []
        self.held: tuple[str, int, Any] | None = None
        self.clock = CELLS
        self.limited = limit_bytes is not None

    # -- operations -------------------------------------------------------------------------

    def possible(self, op: Op) -> bool:
        """Whether the scheduler could start this now: no conflict with the task that runs."""
        if op[0] == "release":
            return self.held is not None
        if self.held is None:
            return True
        if op[0] == "hold":
            return False
        if op[0] not in ("task", "host"):
            return True
        shares = np.intersect1d(self.cells[op[2]], self.cells[self.held[1]]).size
        return op[3] == IN or not shares

    def apply(self, op: Op) -> None:
        """Carry an operation out, and check what it hands to a body."""
        what, device, view, mode = (*op, None, None, None)[:4]
        if what == "task":
            self.task(device, view, mode, op[4])
        elif what == "hold":
            self.note(view)
            self.held = device, view, self.enter(device, view, IN)
        elif what == "release":
            assert self.held is not None
            self.transfers.leave_device(*self.held[2])
            self.held = None
        elif what == "host":
            self.transfers.bring_home(self.views[view], mode)
            self.body(self.views[view], view, mode)
        else:
            self.transfers.bring_all_home()

    def task(self, device: str, view: int, mode: int, trouble: str) -> None:
        memory = self.memories[device]
        memory.full = {"": 0, "full once": 1, "full": 2, "refuses": 0}[trouble]
        memory.refuses = int(trouble == "refuses")
        self.note(view)
        try:
            node, pinned = self.enter(device, view, mode)
        except DeviceOutOfMemory:
            assert trouble == "full" or self.crowded(device, view)
        except DeviceError:
            assert trouble == "refuses"
        else:
            (replica,) = pinned
            self.body(replica.array, view, mode)
            self.transfers.leave_device(node, pinned)
        memory.full = memory.refuses = 0

    def enter(self, device: str, view: int, mode: int) -> Any:
        node: Any = Standing(TASKS[mode])
        args, _, pinned = self.transfers.enter_device(device, 0, node, (self.views[view],), None)
        if mode != OUT:
            assert args[0].tolist() == self.truth[self.cells[view]].tolist()
        return node, pinned

    def body(self, array: Any, view: int, mode: int) -> None:
        """What a task does: look, then write bytes that nothing had before."""
        if mode != OUT:
            assert array.tolist() == self.truth[self.cells[view]].tolist()
        if mode & OUT:
            self.clock += 1
            array[...] = self.clock + np.arange(array.size)
            self.truth[self.cells[view]] = self.clock + np.arange(array.size)
            self.clock += array.size

    def note(self, view: int) -> None:
        """A task with this view was submitted: its region is known from now on."""
        region = self.registry.region(self.views[view])
        array = self.views[view]
        self.forms[id(region), array.shape, array.strides, array.dtype.str] = view
        if view not in self.seen:
            self.seen.append(view)

    def crowded(self, device: str, view: int) -> bool:
        node = self.nodes[device]
        pinned = sum(r.nbytes for r in node.replicas.values() if r.pins)
        return node.limit_bytes is not None and pinned + self.views[view].nbytes > node.limit_bytes

    # -- what must hold ---------------------------------------------------------------------

    def blocks(self) -> list[Any]:
        found = {id(b): b for v in self.seen for b in self.registry.region(self.views[v]).blocks}
        return list(found.values())

    def names(self) -> dict[Any, tuple[str, int]]:
        return {
            replica: (name, self.forms[replica.key])
            for name, node in self.nodes.items()
            for replica in node.replicas.values()
        }

    def cells_of(self, block: Any) -> list[int]:
        start = self.base.__array_interface__["data"][0]
        runs = block.extent.runs()
        return [
            cell - start
            for low, high in zip(runs.starts, runs.stops, strict=True)
            for cell in range(int(low), int(high))
        ]

    def check(self) -> None:
        """Every block is valid somewhere, and right wherever it is valid; the books balance."""
        names = self.names()
        for block in self.blocks():
            cells = self.cells_of(block)
            assert block.home or block.replicas, f"block {cells} is valid nowhere"
            if block.home:
                assert self.base[cells].tolist() == self.truth[cells].tolist()
            for replica in block.replicas:
                order = self.cells[names[replica][1]].tolist()
                held = [int(replica.array[order.index(cell)]) for cell in cells]
                assert held == self.truth[cells].tolist(), names[replica]
        for node in self.nodes.values():
            assert node.used_bytes == sum(r.nbytes for r in node.replicas.values())
            assert node.limit_bytes is None or node.used_bytes <= node.limit_bytes
            for replica in node.replicas.values():
                assert replica.array is not None
                alone = [b for b in replica.region.blocks if not b.home and replica in b.replicas]
                assert (replica.view is not None) == bool(alone), f"the view of {names[replica]}"

    def state(self) -> Any:
        """All that the future depends on, the same for both ways to name the two devices."""
        return min(self._state(DEVICES), self._state(DEVICES[::-1]))

    def _state(self, order: tuple[str, ...]) -> Any:
        number = {name: i for i, name in enumerate(order)}
        names = {r: (number[name], form) for r, (name, form) in self.names().items()}
        blocks = (
            (self.cells_of(b), b.home, sorted(names[r] for r in b.replicas)) for b in self.blocks()
        )
        nodes = [
            [(names[r], r.pins, r.view is not None) for r in self.nodes[name].replicas.values()]
            for name in order
        ]
        ages = nodes if self.limited else [sorted(node) for node in nodes]
        held = (number[self.held[0]], self.held[1]) if self.held else ()
        return repr((sorted(self.seen), sorted(blocks), ages, held))


def operations(views: int, limited: bool) -> Iterator[Op]:
    """All that may happen; what only eviction can disturb, where there is eviction."""
    for view in range(views):
        for mode in (IN, OUT, INOUT):
            yield "host", None, view, mode
            for device in DEVICES:
                for trouble in ("", "full once", "full", "refuses") if limited else ("",):
                    yield "task", device, view, mode, trouble
        for device in DEVICES if limited else ():
            yield "hold", device, view
    if limited:
        yield ("release",)
    yield ("all home",)


def arrived(forms: tuple[Any, ...], limit_bytes: int | None, path: tuple[Op, ...]) -> World:
    world = World(forms, limit_bytes)
    for op in path:
        world.apply(op)
    return world


def walk(forms: tuple[Any, ...], limit_bytes: int | None) -> int:
    """Visit all states; return how many there are."""
    ops = list(operations(len(forms), limit_bytes is not None))
    seen = {World(forms, limit_bytes).state()}
    paths: deque[tuple[Op, ...]] = deque([()])
    while paths:
        path = paths.popleft()
        world = arrived(forms, limit_bytes, path)
        for op in [op for op in ops if world.possible(op)]:
            world = arrived(forms, limit_bytes, path)
            try:
                world.apply(op)
                world.check()
            except Exception as error:
                error.add_note(f"after {path}, at {op}")
                raise
            state = world.state()
            if state not in seen:
                seen.add(state)
                paths.append((*path, op))
    return len(seen)


LEFT, MIDDLE, BACKWARD, WHOLE = slice(0, 2), slice(1, 3), slice(1, None, -1), slice(0, 3)


@pytest.mark.parametrize(
    ("forms", "limit_bytes", "states"),
    [
        pytest.param((LEFT, BACKWARD), None, 60, id="two forms of the same bytes"),
        pytest.param((LEFT, BACKWARD), 3, 70, id="two forms, room for one"),
        pytest.param((LEFT, MIDDLE), 3, 150, id="overlap in part, room for one"),
        pytest.param((LEFT, MIDDLE), None, 240, id="overlap in part", marks=pytest.mark.slow),
        pytest.param(
            (LEFT, WHOLE), 4, 110, id="part and whole, room for some", marks=pytest.mark.slow
        ),
    ],
)
def test_every_state_is_coherent(
    forms: tuple[Any, ...], limit_bytes: int | None, states: int
) -> None:
    assert walk(forms, limit_bytes) >= states
