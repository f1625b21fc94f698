"""A returned value is its own: it shares no memory with data that the graph tracks.

If a task returned a view of one of its arguments, the order of whoever uses the future and of
whoever uses the argument could not be told.  So such a value is copied, and refused under
``strict``.  Objects other than arrays, buffers and built-in containers are passed on as they are:
nothing can be said about copies of them.
"""

from __future__ import annotations

import array as stdlib_array
from typing import Any

import numpy as np

from legato_rt.access import IN
from legato_rt.arguments import Contents, parts_of
from legato_rt.errors import AccessError
from legato_rt.node import Node

_COPIED = (np.ndarray, list, dict, bytearray, memoryview, stdlib_array.array, np.void)


def own_value(runtime: Any, node: Node, value: Any) -> Any:
    """The value that a body returned, copied where it shares memory with tracked data.

    Raises
    ------
    AccessError
        Instead of a copy, if the runtime is strict.
    """
    if not _shares(runtime, node, value, 0):
        return value
    if runtime.strict:
        raise AccessError(
            f"{node.task.name} returns a value that shares memory with tracked data: return a copy"
        )
    if node.scope is not None and node.scope.pending:
        runtime.wait_for_children(node)
    if runtime.executor.transfers is not None:
        for item, _ in Contents().add(value, IN).data:
            runtime.executor.transfers.bring_home(item, IN)
    return _copied(runtime, node, value, 0)


def _shares(runtime: Any, node: Node, value: Any, depth: int) -> bool:
    if depth < 100 and any(
        _shares(runtime, node, item, depth + 1) for item in parts_of(value) or ()
    ):
        return True
    if not isinstance(value, _COPIED):
        return False
    with runtime.executor.lock:
        region = runtime.scheduler.graph.registry.find(value)
        # What the task's own children used first is the task's own, and nobody else has it.
        return bool(
            region is not None
            and region.blocks
            and region.space.owner is not None
            and region.space.owner is not node.scope
        )


def _copied(runtime: Any, node: Node, value: Any, depth: int) -> Any:
    if not _shares(runtime, node, value, depth):
        return value
    if isinstance(value, np.ndarray):
        array = np.array(value, copy=True, subok=True)
        if array.dtype.char == "O":
            for index in np.ndindex(array.shape):
                array[index] = _copied(runtime, node, array[index], depth + 1)
        return array
    if isinstance(value, memoryview):
        return np.array(value).data
    if isinstance(value, np.void):
        return value.copy()
    if isinstance(value, (bytearray, stdlib_array.array)):
        return value[:]
    if isinstance(value, dict):
        return {key: _copied(runtime, node, item, depth + 1) for key, item in value.items()}
    items = [_copied(runtime, node, item, depth + 1) for item in value]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*items)
    return tuple(items) if isinstance(value, tuple) else items
