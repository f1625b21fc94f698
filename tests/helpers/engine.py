"""What a random program means, whoever runs it: an `Engine` submits, waits and cancels.

`tests.helpers.sequential` runs every submit on the spot, `tests.helpers.parallel` on a runtime.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.helpers.bodies import PRIME, PlannedError, digest, fill, leaves, update
from tests.helpers.programs import Arg, Held, Many, Op, Program, Sync, View
from tests.helpers.views import view

NEAR = 8


@dataclass
class Frame:
    """One submitter: the program, or a running body.

    Attributes
    ----------
    prefix : str
        Where in the program it is; names of its tasks start with it.
    granted : list of (object, bool)
        Data that it may use, and whether it may write it.
    futures : list
        Of the tasks that it has submitted.
    scalars, outer : list
        Those with a plain number as value; those of the enclosing submitters.
    scope : object
        The engine's own.
    """

    prefix: str
    granted: list[tuple[Any, bool]]
    outer: list[Any] = field(default_factory=list)
    futures: list[Any] = field(default_factory=list)
    scalars: list[Any] = field(default_factory=list)
    scope: Any = None


class Engine(ABC):
    """Runs a program.

    Attributes
    ----------
    log : dict of str to object
        What the submitters saw when they waited.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.quiet = program.quiet
        self.log: dict[str, Any] = {}

    @abstractmethod
    def submit(self, frame: Frame, key: str, op: Op, args: Sequence[list[Any]]) -> Any:
        """Submit a task with arguments read, updated and overwritten; return its future."""

    @abstractmethod
    def wait(self, frame: Frame) -> None:
        """Wait for all that the frame has submitted."""

    @abstractmethod
    def ask(self, frame: Frame, future: Any) -> Any:
        """The value of a future as something to compare, or how it ended."""

    @abstractmethod
    def reclaim(self, frame: Frame, item: Any) -> bool:
        """Wait for data; false if it was not written because of a failure."""

    @abstractmethod
    def lend(self, frame: Frame, item: Any, mode: str, which: int) -> bool:
        """Use data in a ``host`` block; false if it was not written because of a failure."""

    @abstractmethod
    def cancel(self, frame: Frame, futures: list[Any]) -> None:
        """Cancel what has not started."""

    # -- meaning ------------------------------------------------------------------------------

    def play(self, frame: Frame) -> None:
        """Do what the program does."""
        self.run(frame, self.program.unrolled())
        if self.program.cancels:
            self.cancel(frame, some_of(frame.futures))
            self.wait(frame)

    def run(self, frame: Frame, ops: Sequence[Op | Sync]) -> None:
        """Do what one submitter does."""
        for index, op in enumerate(ops):
            key = f"{frame.prefix}{index}"
            if isinstance(op, Sync):
                self._sync(frame, key, op)
                continue
            args = [
                [x for arg in group if (x := build(frame, arg, write)) is not None]
                for group, write in ((op.reads, False), (op.updates, True), (op.overwrites, True))
            ]
            future = self.submit(frame, key, op, args)
            frame.futures.append(future)
            if op.result in ("int", "none"):
                frame.scalars.append(future)

    def body(
        self, key: str, op: Op, args: Sequence[list[Any]], outer: list[Any], scope: Any = None
    ) -> Any:
        """What a task does with its arguments."""
        reads, updates, overwrites = args
        seen = digest(reads, updates)
        if op.fails == "first":
            raise PlannedError(key)
        for item in updates:
            update(item, op.a, op.b + seen)
        for item in overwrites:
            fill(item, op.b + seen)
        own = np.array([seen, op.a, op.b, 1], np.int64)
        if op.children:
            granted = [(leaf, False) for item in reads for leaf in leaves(item)]
            written = [*updates, *overwrites, own]
            granted += [(leaf, True) for item in written for leaf in leaves(item)]
            frame = Frame(f"{key}.", granted, outer, scope=scope)
            self.run(frame, op.children)
            seen = self._after(frame, op, seen, written)
        if op.fails == "last":
            raise PlannedError(key)
        return result(op, seen, own, args)

    def _after(self, frame: Frame, op: Op, seen: int, written: list[Any]) -> int:
        if op.after == "wait":
            self.wait(frame)
            seen = digest(written)
            for item in written:
                update(item, op.a, op.b + seen)
        elif op.after == "ask":
            for number, future in enumerate(frame.futures):
                self.log[f"{frame.prefix}ask{number}"] = self.ask(frame, future)
        elif op.after == "cancel":
            self.cancel(frame, some_of(frame.futures))
        return seen

    def visible(self, frame: Frame) -> list[Any]:
        """Futures that a task submitted now may hand to its children; none that may fail."""
        return [*frame.outer, *frame.scalars] if self.quiet else []

    def _sync(self, frame: Frame, key: str, sync: Sync) -> None:
        if sync.kind == "wait":
            self.wait(frame)
        if sync.kind == "cancel":
            self.cancel(frame, some_of(frame.futures))
        if sync.kind == "result" and frame.futures:
            near = frame.futures[-NEAR:]
            self.log[key] = self.ask(frame, near[sync.which % len(near)])
        elif sync.kind in ("data", "host"):
            mode = ("in", "inout", "out")[sync.which % 3] if sync.kind == "host" else "in"
            item = build(frame, sync.view, mode != "in")
            if item is not None and sync.kind == "data":
                self.log[key] = digest(item) if self.reclaim(frame, item) else "unwritten"
            elif item is not None:
                self.log[key] = self.lend(frame, item, mode, sync.which)


def some_of(futures: list[Any]) -> list[Any]:
    """Every third of the last ones."""
    return futures[-20::3]


def use(item: Any, mode: str, which: int) -> Any:
    """What a ``host`` block does."""
    if mode == "inout":
        update(item, 3, which)
    elif mode == "out":
        fill(item, which)
    return digest(item)


def build(frame: Frame, arg: Arg, write: bool) -> Any:
    """An argument, or `None` if the frame has nothing of the kind."""
    if isinstance(arg, Held):
        pool = frame.outer if arg.outer else frame.futures[-NEAR:]
        return pool[-1 - arg.back % len(pool)] if pool else None
    if isinstance(arg, Many):
        parts = [
            part
            for inner in arg.items
            if not (write and arg.kind != "tuple" and isinstance(inner, Held))
            and (part := build(frame, inner, write)) is not None
        ]
        if arg.kind == "dict":
            return dict(enumerate(parts))
        return parts if arg.kind == "list" else tuple(parts)
    pool = [item for item, writable in frame.granted if writable or not write]
    return look(pool[arg.base % len(pool)], arg, write) if pool else None


def look(item: Any, at: View, write: bool) -> Any:
    """A view of a piece of data, of the same kind."""
    if isinstance(item, memoryview):
        return memoryview(view(np.asarray(item), at.steps))
    if not isinstance(item, np.ndarray):
        return item
    seen = view(item, at.steps)
    if at.broadcast and not write and seen.ndim < 4:
        seen = np.broadcast_to(seen, (at.broadcast, *seen.shape))
    return seen


def result(op: Op, seen: int, own: Any, args: Sequence[list[Any]]) -> Any:
    """What a task returns."""
    made = np.array([seen, op.a, op.b], np.int64)
    if op.result == "alias":
        data = (leaf for item in (*args[1], *args[2], *args[0]) for leaf in leaves(item))
        return next((leaf for leaf in data if isinstance(leaf, np.ndarray)), seen)
    return {
        "none": None,
        "array": made,
        "tuple": (seen, made),
        "dict": {"x": made, "n": seen},
        "list": [made, seen],
        "own": own,
    }.get(op.result, seen % PRIME)
