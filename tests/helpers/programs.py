"""Random programs as plain data: tasks on views, futures and mutable objects, nested and failing.

A program is a list of `Op` (a task) and `Sync` (the submitter waits, asks or lends).  Every number
in it is taken modulo what there is to choose from, so that any list is a valid program and
Hypothesis can shrink it freely.  `tests.helpers.engine` says what a program means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from hypothesis import strategies as st

from tests.helpers.views import Step, small, steps

MAX_DEPTH = 5


@dataclass(frozen=True)
class View:
    """A view of the data number ``base`` of those that the submitter may use."""

    base: int
    steps: tuple[Step, ...] = ()
    broadcast: int = 0


@dataclass(frozen=True)
class Held:
    """The future of the task submitted ``back`` tasks ago; of an enclosing scope if ``outer``."""

    back: int
    outer: bool = False


@dataclass(frozen=True)
class Many:
    """A list, tuple or dict of arguments."""

    kind: str
    items: tuple[View | Held, ...]


Arg = View | Held | Many


@dataclass(frozen=True)
class Op:
    """A task.

    Attributes
    ----------
    reads, updates, overwrites : tuple of Arg
        `In`, `InOut` and `Out` arguments.
    a, b : int
        What it multiplies by and adds: two tasks on the same data do not commute.
    fails : str
        ``""``, ``"first"`` (before it writes) or ``"last"`` (when its children are submitted).
    result : str
        What it returns; ``"alias"`` is an array that it was given, ``"own"`` one that it made and
        that its children may still write.
    after : str
        What it does about its children: ``"wait"`` and update once more, ``"ask"`` each for its
        result, ``"cancel"`` some, or nothing.
    """

    reads: tuple[Arg, ...] = ()
    updates: tuple[Arg, ...] = ()
    overwrites: tuple[Arg, ...] = ()
    a: int = 1
    b: int = 0
    priority: int = 0
    fails: str = ""
    result: str = "int"
    children: tuple[Op | Sync, ...] = ()
    after: str = ""


@dataclass(frozen=True)
class Sync:
    """What the submitter does between two submits: wait, use data or a result, or cancel."""

    kind: str
    which: int = 0
    view: View = View(0)


@dataclass(frozen=True)
class Program:
    """Ops to run ``rounds`` times, at most ``limit`` tasks.

    ``cancels`` cancels some of them at the end, ``hold`` lets none start before that.
    """

    ops: tuple[Op | Sync, ...]
    rounds: int = 1
    hold: bool = False
    cancels: bool = False
    limit: int = 200

    @property
    def quiet(self) -> bool:
        """Whether nothing fails and nothing is cancelled."""
        return not self.cancels and not any(map(_fails, self.ops))

    def unrolled(self) -> list[Op | Sync]:
        """The ops of all rounds, cut off at the limit."""
        found: list[Op | Sync] = []
        count = 0
        for op in self.ops * self.rounds:
            count += size(op)
            if count > self.limit:
                break
            found.append(op)
        return found


def size(op: Op | Sync) -> int:
    """How many tasks an op is, with all its children."""
    return 0 if isinstance(op, Sync) else 1 + sum(map(size, op.children))


def _fails(op: Op | Sync) -> bool:
    if isinstance(op, Sync):
        return op.kind == "cancel"
    return op.fails != "" or op.after == "cancel" or any(map(_fails, op.children))


views = st.builds(View, st.integers(0, 15), steps, st.sampled_from((0, 0, 0, 2)))
plain_views = st.builds(View, st.integers(0, 15), steps)
held = st.builds(Held, small, st.booleans())
many = st.builds(
    Many,
    st.sampled_from(("list", "tuple", "dict")),
    st.lists(st.one_of(views, held), min_size=1, max_size=3).map(tuple),
)
args = st.one_of(views, held, many)


def some(strategy: Any, most: int) -> Any:
    """A tuple of up to ``most``."""
    return st.lists(strategy, max_size=most).map(tuple)


@dataclass(frozen=True)
class Kinds:
    """What may occur in a program."""

    fails: Sequence[str]
    afters: Sequence[str]
    syncs: Sequence[str]


def ops(kinds: Kinds, depth: int) -> Any:
    """Ops with children down to a depth."""
    children = st.just(())
    if depth:
        deeper = st.deferred(lambda: scope(kinds, depth - 1, 3))
        children = st.one_of(st.just(()), st.just(()), deeper)
    return st.builds(
        Op,
        reads=some(args, 2),
        updates=some(args, 2),
        overwrites=some(plain_views, 1),
        a=st.integers(1, 9),
        b=st.integers(0, 9),
        priority=st.sampled_from((0, 0, 0, 1, 5, -1)),
        fails=st.sampled_from(kinds.fails),
        result=st.sampled_from(("int", "none", "array", "tuple", "dict", "list", "alias", "own")),
        children=children,
        after=st.sampled_from(kinds.afters),
    )


def scope(kinds: Kinds, depth: int, most: int) -> Any:
    """What one submitter does."""
    one = ops(kinds, depth)
    one = st.one_of(
        one, one, one, one, st.builds(Sync, st.sampled_from(kinds.syncs), small, plain_views)
    )
    if most < 10:
        return st.lists(one, max_size=most).map(tuple)
    # One list alone is short far too often.
    lists = st.lists(st.lists(one, max_size=most // 5), max_size=5)
    return lists.map(lambda parts: tuple(chain.from_iterable(parts)))


def programs(
    *, failing: bool = False, cancelling: bool = False, most: int = 40, limit: int = 200
) -> Any:
    """Random programs."""
    kinds = Kinds(
        fails=("", "", "", "first", "last") if failing else ("",),
        afters=("", "wait", "ask", "cancel") if cancelling else ("", "wait", "ask"),
        syncs=("wait", "data", "result", "host", "cancel")[: 5 if cancelling else 4],
    )
    return st.builds(
        Program,
        scope(kinds, MAX_DEPTH - 1, most),
        st.sampled_from((1, 2, 5, 10) if limit <= 200 else (20, 50, 100)),
        st.booleans() if cancelling else st.just(False),
        st.just(cancelling),
        st.just(limit),
    )
