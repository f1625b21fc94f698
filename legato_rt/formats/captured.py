"""A captured graph as a recorded one: what remains of tasks without their bodies and arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from legato_rt.access import IN, OUT
from legato_rt.arguments import Contents
from legato_rt.formats.recorded import GraphRecord, TaskRecord
from legato_rt.node import Node, Step


def recorded(steps: Sequence[Step], name: str = "") -> GraphRecord:
    """The tasks of a captured graph with their predecessors, data and flops.

    Every view is a datum of its own, named in order of first use; what a future holds is not known
    and counts no bytes.
    """
    names: dict[tuple[Any, ...], str] = {}
    return GraphRecord(tuple(_task(step, names) for step in steps), name)


def _task(step: Step, names: dict[tuple[Any, ...], str]) -> TaskRecord:
    node = step.node
    reads: dict[str, float] = {}
    writes: dict[str, float] = {}
    for _, mode, value in node.task.signature.items(node.args, node.kwargs):
        for item, direction in Contents().add(value, mode).data:
            datum = names.setdefault(_key(item), f"d{len(names)}")
            nbytes = float(getattr(item, "nbytes", 0))
            if direction & IN:
                reads[datum] = nbytes
            if direction & OUT:
                writes[datum] = nbytes
    return TaskRecord(
        name=node.title,
        kind=node.task.name,
        predecessors=tuple(sorted({*step.values, *step.orders})),
        reads=tuple(reads.items()),
        writes=tuple(writes.items()),
        flops=_flops(node),
        priority=node.options.priority,
    )


def _key(item: Any) -> tuple[Any, ...]:
    if isinstance(item, np.ndarray):
        address = item.__array_interface__["data"][0]
        return address, item.shape, item.strides, item.dtype.str
    return (id(item),)


def _flops(node: Node) -> float | None:
    """Declared operations of a task, where its arguments are known before it runs."""
    flops = node.task.flops
    if flops is None or node.holes:
        return None
    return float(flops(*node.args, **(node.kwargs or {})))
