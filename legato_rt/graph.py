"""The graph: nodes, and the edges that follow from futures and from accesses to data.

Every block of data has, in each scope of submission, a history: the unfinished task that writes it
last, and the unfinished tasks that read it since.  A new access adds edges from these::

    access      waits for                       edge carries a value (a failure spreads along it)
    In          the writer           RAW        yes
    InOut       the writer, readers  WAW, WAR   from the writer yes, from readers no
    Out         the writer, readers  WAW, WAR   no: what was there before does not matter

A finished task leaves the histories at once, so they hold unfinished tasks only.  A failed one
leaves its mark: who reads what it should have written fails too, until the data is overwritten or
the failure was delivered.

A task that submits has a scope of its own; its children's accesses are ordered among themselves
there, and to everybody else they are part of their parent.
"""

from __future__ import annotations

from typing import Any

from legato_rt.access import IN, INOUT, OUT
from legato_rt.arguments import ATOM, KINDS, Contents, holds
from legato_rt.data import Registry
from legato_rt.errors import AccessError, LegatoError
from legato_rt.future import FINISHED, is_delivered
from legato_rt.node import Node, Scope
from legato_rt.spaces import Region, Space


class History:
    """Who uses a block: its last writer, the readers since, and a failure that left it unset."""

    __slots__ = ("failed", "readers", "writer")

    def __init__(self) -> None:
        self.writer: Node | None = None
        self.readers: dict[Node, None] = {}
        self.failed: Node | None = None

    @property
    def idle(self) -> bool:
        """Whether nothing is left to wait for or to tell."""
        return self.writer is None and not self.readers and not self.is_poisoned()

    def is_poisoned(self) -> bool:
        """Whether the data is missing and the program does not know yet."""
        if self.failed is not None and is_delivered(self.failed.value):
            self.failed = None
        return self.failed is not None

    def copy(self) -> History:
        """The same history for the other part of a split block."""
        other = History()
        other.writer, other.readers, other.failed = self.writer, dict(self.readers), self.failed
        return other


class Graph:
    """Finds the edges of new nodes and takes finished ones out of the histories.

    Attributes
    ----------
    registry : Registry
        The data that is tracked.
    """

    def __init__(self) -> None:
        self.registry = Registry()

    def link(
        self, node: Node, futures: list[Node] | None, data: list[tuple[Any, int]] | None
    ) -> None:
        """Add the edges of a new node; it is ready if ``waiting`` stays 0."""
        for other in futures or ():
            if other.state < FINISHED:
                node.waiting += 1
                if other.successors is None:
                    other.successors = [node]
                else:
                    other.successors.append(node)
            elif other.state != FINISHED:
                doom(node, other)
            elif KINDS.get(type(other.value)) != ATOM:
                self._receive(node, other)
        if data:
            if node.accesses is None:
                node.accesses = []
            for item, mode in data:
                self._access(node, self.registry.region(item), mode)

    def arrived(self, node: Node) -> None:
        """A value that tasks wait for is there: their accesses to it count from now on."""
        assert node.successors is not None
        for other in dict.fromkeys(node.successors):
            try:
                self._receive(other, node)
            except LegatoError as error:
                other.value = error

    def _receive(self, node: Node, source: Node) -> None:
        """Add the accesses of a node to the value of a finished one that it has as argument."""
        for _, mode, argument in node.task.signature.items(node.args, node.kwargs):
            if holds(argument, source):
                data = Contents().add(source.value, mode).data
                if data and node.accesses is None:
                    node.accesses = []
                for item, direction in data:
                    region = self.registry.region(item)
                    late = _later_users(node, region)
                    if late:
                        self._access_before(late, node, region, direction)
                    else:
                        self._access(node, region, direction)

    def _access_before(self, late: set[Node], node: Node, region: Region, mode: int) -> None:
        """Add an access that comes before those of nodes submitted later.

        A task may return an object that it was given, and others may be waiting for the object
        itself already when it turns out that an earlier one uses it, too.
        """
        past = []
        for block in region.blocks:
            history = block.histories[node.parent]
            writer = history.writer if history.writer in late else None
            past.append((history, writer, {r: None for r in history.readers if r in late}))
            history.writer = None if writer is not None else history.writer
            history.readers = {r: None for r in history.readers if r not in late}
        self._access(node, region, mode)
        for history, writer, readers in past:
            for user in [writer, *readers] if mode & OUT else [writer]:
                if user is None or leads(node, user):
                    continue
                if not user.waiting:  # it may have started
                    edge(user, node, value=user is writer)
                elif not leads(user, node):
                    edge(node, user, value=bool(mode & OUT))
            if writer is not None:
                history.writer, history.readers = writer, readers
            else:
                history.readers.update(readers)

    def unlink(self, node: Node, failed: bool) -> None:
        """Take a node that is over out of the histories of its data."""
        scope, inner = node.parent, node.scope
        for region, _ in node.accesses or ():
            for block in region.blocks:
                if inner is not None:
                    block.histories.pop(inner, None)
                history = block.histories.get(scope)
                if history is None:
                    continue
                if history.writer is node:
                    history.writer = None
                    if failed:
                        history.failed = node
                elif history.readers:
                    history.readers.pop(node, None)
                if scope.node is not None and history.idle:
                    del block.histories[scope]
            if region.space is not None and region.space.item is not None:
                self.registry.release(region)

    def users(self, item: Any, mode: int, scope: Scope) -> list[Node]:
        """Unfinished nodes of a scope that an access to ``item`` would have to wait for."""
        found: dict[Node, None] = {}
        for block in self.registry.blocks(item):
            history = block.histories.get(scope)
            if history is not None:
                if history.writer is not None:
                    found[history.writer] = None
                if mode & OUT:
                    found.update(history.readers)
        return list(found)

    def failures(self, item: Any, scope: Scope) -> list[Node]:
        """Failed nodes that left ``item`` unwritten and that the program has not heard of."""
        found: dict[Node, None] = {}
        for block in self.registry.blocks(item):
            history = block.histories.get(scope)
            if history is not None and history.is_poisoned() and history.failed is not None:
                found[history.failed] = None
        return list(found)

    def _access(self, node: Node, region: Region, mode: int) -> None:
        scope = node.parent
        space = region.space
        assert space is not None
        assert node.accesses is not None
        if space.owner is not scope:
            self._own(node, region, mode, space)
        if space.item is not None:
            region.pending += 1
        node.accesses.append((region, mode))
        if region.coarse and mode == OUT:
            mode = INOUT
        for block in region.blocks:
            history = block.histories.get(scope)
            if history is None:
                history = block.histories[scope] = History()
            writer = history.writer
            if writer is not None and writer is not node:
                edge(writer, node, value=mode != OUT)
            if history.failed is not None:
                if mode != OUT and writer is None and history.is_poisoned():
                    doom(node, history.failed)
                if mode == OUT:
                    history.failed = None
            if mode == IN:
                if writer is not node:
                    history.readers[node] = None
                continue
            if history.readers:
                for reader in history.readers:
                    if reader is not node:
                        edge(reader, node, value=False)
                history.readers = {}
            history.writer = node

    def _own(self, node: Node, region: Region, mode: int, space: Space) -> None:
        """Settle whose data it is, for a space that the node's scope does not own."""
        scope, owner = node.parent, space.owner
        if owner is None or (owner.node is not None and owner.node.state >= FINISHED):
            space.owner = scope
        elif scope.is_within(owner):
            if not scope.grants(region, mode) and not self._harmless(region, mode, scope):
                raise AccessError(
                    f"{node.title} (submitted at {node.where}) {_VERB[mode]} data that its parent "
                    f"{scope.node.title} did not declare: add a parameter with "
                    f"{'InOut' if mode & OUT else 'In'}[…] to {scope.node.task.name}"
                )
        else:
            edge(self._elder(owner, scope, node), node, value=False)

    def _harmless(self, region: Region, mode: int, scope: Scope) -> bool:
        """Reading an object by identity (a lock, a model) that nobody outside writes."""
        if mode != IN or region.space is None or region.space.item is None:
            return False
        pasts = (h for b in region.blocks for s, h in b.histories.items() if s is not scope)
        return all(h.writer is None for h in pasts)

    def _elder(self, owner: Scope, scope: Scope, node: Node) -> Node:
        """The task of ``scope`` inside which the data was first used."""
        below = owner
        while below.node is not None and below.node.parent is not scope:
            below = below.node.parent
        if below.node is None or below.node is node:
            raise AccessError(
                f"{node.title} (submitted at {node.where}) uses data that a task elsewhere in the "
                "graph is using without having declared it: pass it as an argument of both"
            )
        return below.node


_VERB = {IN: "reads", OUT: "writes", INOUT: "writes"}


def _later_users(node: Node, region: Region) -> set[Node]:
    """Who was submitted later than a node that is about to use an object known by identity."""
    found: set[Node] = set()
    if region.space is None or region.space.item is None:
        return found
    for block in region.blocks:
        history = block.histories.get(node.parent)
        if history is None:
            continue
        if history.writer is not None and history.writer.seq > node.seq:
            found.add(history.writer)
        for reader in reversed(history.readers):  # the latest are last
            if reader.seq < node.seq:
                break
            found.add(reader)
    return found


def leads(before: Node, after: Node) -> bool:
    """Whether one pending node waits for another, over however many in between."""
    seen = {before}
    found = [before]
    while found:
        node = found.pop()
        if node is after:
            return True
        more = {*(node.successors or ()), *(node.followers or ())} - seen
        seen |= more
        found += more
    return False


def edge(before: Node, after: Node, value: bool) -> None:
    """Make one node wait for another, with or without need of its value."""
    after.waiting += 1
    if value:
        if before.successors is None:
            before.successors = [after]
        elif before.successors[-1] is after:
            after.waiting -= 1
        else:
            before.successors.append(after)
    elif before.followers is None:
        before.followers = [after]
    elif before.followers[-1] is after:
        after.waiting -= 1
    else:
        before.followers.append(after)


def doom(node: Node, failed: Node) -> None:
    """Note that a waiting node cannot run because another failed."""
    if node.value is None:
        node.value = [failed]
    elif isinstance(node.value, list) and failed not in node.value:
        node.value.append(failed)
