"""A returned value is its own: it shares no memory with data that the graph tracks.

If a task returned a view of one of its arguments, the order of whoever uses the future and of
whoever uses the argument could not be told.  So such a value is copied, and refused under
``strict``.  Objects other than arrays and built-in containers are passed on as they are: nothing
can be said about copies of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from legato_rt.access import IN
from legato_rt.arguments import DATA, DICT, LIST, TUPLE, Contents, kind_of
from legato_rt.errors import AccessError
from legato_rt.node import Node


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
    kind = kind_of(value)
    if kind in (TUPLE, LIST, DICT) and depth < 100:
        items = value.values() if kind == DICT else value
        if any(_shares(runtime, node, item, depth + 1) for item in items):
            return True
    if kind not in (DATA, LIST, DICT) or not isinstance(value, (np.ndarray, list, dict)):
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
        return np.array(value, copy=True, subok=True)
    if isinstance(value, dict):
        return {key: _copied(runtime, node, item, depth + 1) for key, item in value.items()}
    items = [_copied(runtime, node, item, depth + 1) for item in value]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*items)
    return tuple(items) if isinstance(value, tuple) else items
