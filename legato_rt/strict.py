"""``strict=True``: what is otherwise only documented becomes an error where NumPy can notice it.

A body gets its `In` arrays read-only.  The very array objects that the program passed are read-only
for the program while tasks use them; the tasks get writable aliases of them.
"""

from __future__ import annotations

import linecache
import re
import traceback
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from legato_rt.access import IN
from legato_rt.arguments import rebuilt
from legato_rt.errors import AccessError
from legato_rt.graph import Graph
from legato_rt.node import Node
from legato_rt.task import Task

Array = npt.NDArray[Any]


class Guard:
    """Keeps the arrays of one strict runtime read-only where they must not be written."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._lent: dict[int, tuple[Array, Array]] = {}

    def lend(
        self, task: Task[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any] | None
    ) -> tuple[tuple[Any, ...], dict[str, Any] | None]:
        """Arguments with aliases in place of arrays, which are read-only for the program now."""
        found = [rebuilt(value, self._alias) for _, _, value in task.signature.items(args, kwargs)]
        count = len(args)
        keywords = dict(zip(kwargs or {}, found[count:], strict=True)) if kwargs else None
        return tuple(found[:count]), keywords

    def reclaim(self, granted: Any = None) -> None:
        """Give back to the program the arrays that no unfinished task uses.

        Parameters
        ----------
        granted : object, optional
            An array whose memory the program itself holds now.
        """
        for key, (array, alias) in list(self._lent.items()):
            mine = isinstance(granted, np.ndarray) and np.may_share_memory(granted, alias)
            if mine or not any(block.used for block in self._graph.registry.blocks(alias)):
                _make_writable(array)
                del self._lent[key]

    def _alias(self, array: Array) -> Array:
        known = self._lent.get(id(array))
        if known is not None and known[0] is array:
            return known[1]
        if not array.flags.writeable and not self._unlock(array):
            return array
        alias = array.view()
        array.flags.writeable = False
        self._lent[id(array)] = array, alias
        return alias

    def _unlock(self, array: Array) -> bool:
        """Make writable a view that is read-only because it was taken of a lent array."""
        if not any(_is_kin(array, alias) for _, alias in self._lent.values()):
            return False
        _make_writable(array)
        return True


def _is_kin(array: Array, alias: Array) -> bool:
    """Whether two arrays share memory; those without elements, whether they share their owner."""
    if array.size == 0:
        return array.base is not None and _root(array) is _root(alias)
    return np.may_share_memory(array, alias)


def _root(array: Array) -> object:
    return array.base if array.base is not None else array


def _make_writable(array: Array) -> None:
    """Set the flag of a view, which NumPy allows only while the owner's is set."""
    root = array.base if array.base is not None else array
    closed = root is not array and not root.flags.writeable
    if closed:
        root.flags.writeable = True
    try:
        array.flags.writeable = True
    finally:
        if closed:
            root.flags.writeable = False


def shielded(
    node: Node, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments of a body with all arrays that it only reads made read-only."""
    found = [
        rebuilt(value, _read_only) if mode == IN else value
        for _, mode, value in node.task.signature.items(args, kwargs)
    ]
    count = len(args)
    return tuple(found[:count]), dict(zip(kwargs, found[count:], strict=True))


def explain_write(
    error: BaseException, node: Node, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None
) -> None:
    """Raise an error that names task and argument, if a body wrote what it declared `In`."""
    if not re.search(r"read-?only", str(error)):
        return
    reads = {
        name: value
        for name, mode, value in node.task.signature.items(args, kwargs)
        if mode == IN and isinstance(value, np.ndarray)
    }
    written = _names_at_fault(error.__traceback__, reads) or sorted(reads)
    if written:
        raise AccessError(
            f"{node.title} writes {' or '.join(written)}, which {node.task.name} declares In: "
            "declare it InOut, or write a copy"
        ) from error


def _names_at_fault(trace: TracebackType | None, reads: Mapping[str, Array]) -> list[str]:
    """Parameters whose memory is named by the expression that raised."""
    frames = list(traceback.walk_tb(trace))
    if not frames:
        return []
    frame = frames[-1][0]
    at = traceback.extract_tb(trace)[-1]
    text = linecache.getline(at.filename, at.lineno or 0)[at.colno or 0 : at.end_colno]
    arrays = [
        frame.f_locals[name]
        for name in re.findall(r"[A-Za-z_]\w*", text)
        if isinstance(frame.f_locals.get(name), np.ndarray)
    ]
    return [
        name
        for name, value in reads.items()
        if any(not a.flags.writeable and np.may_share_memory(a, value) for a in arrays)
    ]


def _read_only(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view
