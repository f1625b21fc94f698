"""Nodes of the graph, and the scopes they are submitted in."""

from __future__ import annotations

from operator import is_
from types import CodeType
from typing import Any, NamedTuple

from legato_rt.access import IN, OUT
from legato_rt.arguments import ATOM, DATA, FUTURE, KINDS, Contents
from legato_rt.errors import LegatoError, UsageError
from legato_rt.future import STATES, WAITING, Future
from legato_rt.placement import Candidate, Choice, Plan
from legato_rt.spaces import Block, Region
from legato_rt.task import Options, Task, Variant


class Site(NamedTuple):
    """A place in the program, with the names that a frame has for it."""

    f_code: CodeType
    f_lasti: int


class Node(Future[Any]):
    """A task of the graph.

    Attributes
    ----------
    waiting : int
        Edges to it that are not released yet.
    holes : bool
        Whether the arguments hold futures, whose values take their place when the body starts.
    successors, followers : list of Node or None
        Who waits for this node's value or data; who waits only for its end.
    accesses : list of (Region, int) or None
        Its accesses and their directions.
    scope : Scope or None
        Where its own children live, once it has submitted one.
    placed : Candidate or None
        Where a policy that predicts sent it, and what that is expected to cost.
    worker : int
        Who runs it, once it has started.
    value : object
        The result or the error; before that, the failed nodes among those it waits for.
    """

    __slots__ = (
        "accesses",
        "args",
        "caller",
        "choice",
        "followers",
        "holes",
        "kwargs",
        "lasti",
        "options",
        "placed",
        "plan",
        "scope",
        "seq",
        "successors",
        "variant",
        "waiting",
        "worker",
    )

    accesses: list[tuple[Region, int]] | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any] | None
    followers: list[Node] | None
    successors: list[Node] | None
    choice: Choice | None
    options: Options
    placed: Candidate | None
    plan: Plan
    scope: Scope | None
    variant: Variant | None
    worker: int

    def __init__(
        self,
        parent: Scope,
        seq: int,
        plan: Plan,
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None,
        options: Options,
        frame: Any,
    ) -> None:
        self.parent = parent
        self.seq = seq
        self.plan = plan
        self.choice = None
        self.args = args
        self.kwargs = kwargs
        self.options = options
        self.caller = frame.f_code
        self.lasti = frame.f_lasti
        self.state = WAITING
        self.waiting = 0
        self.value = None
        self.callbacks = self.accesses = self.followers = self.successors = None
        self.scope = self.variant = self.placed = None
        self.holes = False

    @property
    def task(self) -> Task[..., Any]:
        """What it runs."""
        return self.plan.task

    @property
    def title(self) -> str:
        """Name and number, as messages show them."""
        return f"{self.options.name or self.task.name}#{self.seq}"

    @property
    def site(self) -> Site:
        """Where it was submitted, as the frame of another submit."""
        return Site(self.caller, self.lasti)

    @property
    def where(self) -> str:
        """``file:line`` of the submit."""
        code, at = self.caller, self.lasti
        line = next((line for first, end, line in code.co_lines() if first <= at < end), None)
        return f"{code.co_filename}:{line or code.co_firstlineno}"

    @property
    def story(self) -> str:
        """All that is known of the node, for messages about faults."""
        after = [n.title for n in self.successors or ()] + [n.title for n in self.followers or ()]
        return (
            f"{self.title} is {STATES[self.state]}: submitted at {self.where}, "
            f"waits for {self.waiting} edges, worker {getattr(self, 'worker', None)}, "
            f"variant {self.variant}, "
            f"waited for by {', '.join(after) or 'nobody'}"
        )


class Scope:
    """Where the nodes of one submitter live: the program's own (``node`` is None) or a task's.

    Attributes
    ----------
    pending : int
        Nodes of the scope that are not over.
    eager : bool
        Whether each submit returns only when its task is over.
    whole : bool
        Whether its nodes are parts of the task that owns it, with the task's data.
    cut : bool
        Whether a node of it was cancelled because the runtime closes.
    failures : list of LegatoError
        What failed here first-hand.
    error : LegatoError or None
        What the task's own body raised while children were pending.
    barriers : list of Future
        Done as soon as nothing is pending.
    """

    __slots__ = (
        "_granted",
        "_grants",
        "barriers",
        "cut",
        "eager",
        "error",
        "failures",
        "node",
        "pending",
        "runtime",
        "whole",
    )

    def __init__(self, runtime: Any, node: Node | None) -> None:
        self.runtime = runtime
        self.node = node
        self.pending = 0
        self.eager = self.whole = self.cut = False
        self.failures: list[LegatoError] = []
        self.error: LegatoError | None = None
        self.barriers: list[Future[Any]] = []
        self._grants: dict[Block, int] = {}
        self._granted: list[tuple[Block, ...]] = []

    def is_within(self, other: object) -> bool:
        """Whether this scope is ``other`` or below it."""
        scope: Scope | None = self
        while scope is not None:
            if scope is other:
                return True
            scope = scope.node.parent if scope.node is not None else None
        return False

    def grants(self, region: Region, mode: int) -> bool:
        """Whether the task that owns this scope declared an access that covers another."""
        owner = self.node
        assert owner is not None
        while owner.parent.whole:
            owner = owner.parent.node  # a part of a task has what the whole has
        accesses = owner.accesses or []
        # A split changes the blocks of a region: the summary is good for these very tuples only.
        current = [declared.blocks for declared, _ in accesses]
        if len(current) != len(self._granted) or not all(map(is_, current, self._granted)):
            self._granted = current
            self._grants = {}
            for declared, direction in accesses:
                for block in declared.blocks:
                    self._grants[block] = self._grants.get(block, 0) | direction
        need = OUT if mode & OUT else IN
        return all(_allows(self._grants.get(b, 0), need) for b in region.blocks)


def _allows(granted: int, need: int) -> bool:
    return bool(granted & OUT) or (need == IN and bool(granted & IN))


class Step(NamedTuple):
    """One task of a captured graph.

    Attributes
    ----------
    node : Node
        As it was recorded; its arguments hold recorded nodes in place of values.
    values : tuple of int
        Steps whose value or data it needs.
    orders : tuple of int
        Steps that must only be over before it.
    """

    node: Node
    values: tuple[int, ...]
    orders: tuple[int, ...]


KINDS[Node] = FUTURE


def search(
    node: Node,
) -> tuple[list[Node] | None, list[tuple[Any, int]] | None]:
    """Futures and data in a node's arguments.

    Raises
    ------
    UsageError
        Naming the parameter, if it holds what no task can take.
    """
    if not node.kwargs:
        found = _plain(node)
        if found is not None:
            return found
    contents = Contents()
    for name, mode, value in node.task.signature.items(node.args, node.kwargs):
        try:
            contents.add(value, mode)
        except UsageError as error:
            raise UsageError(f"{node.task.name}({name}=…): {error}") from None
    if contents.stuck:
        raise UsageError(
            f"an argument of {node.title} holds a future in a {contents.stuck}: use a list, tuple "
            "or dict, of which the task gets a copy with the value in its place"
        )
    for future in contents.futures:
        if future.parent.runtime is not node.parent.runtime:
            refuse_foreign(node, future)
    node.holes = bool(contents.futures)
    return contents.futures or None, contents.data or None


def _plain(node: Node) -> tuple[list[Node] | None, list[tuple[Any, int]] | None] | None:
    """The same where arguments are arrays that are read, futures and constants; else `None`."""
    futures: list[Node] = []
    data: list[tuple[Any, int]] = []
    args = node.args
    for value, mode in zip(args, node.task.signature.positional_modes(len(args)), strict=False):
        kind = KINDS.get(type(value))
        if kind == DATA and mode != OUT and not value.dtype.hasobject:
            data.append((value, mode))
        elif kind == FUTURE:
            if value.parent.runtime is not node.parent.runtime:
                refuse_foreign(node, value)
            futures.append(value)
        elif kind != ATOM:
            return None
    node.holes = bool(futures)
    return futures or None, data or None


def refuse_foreign(node: Node, future: Future[Any]) -> None:
    """A future of another runtime may be an argument only when it is done."""
    if not future.done():
        raise UsageError(
            f"an argument of {node.title} is a future of another runtime: pass its result() instead"
        )
