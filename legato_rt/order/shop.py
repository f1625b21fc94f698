"""A graph and a machine as the arrays that compiled schedulers run on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from legato_rt.order.arrays import Floats, Ints
from legato_rt.order.dag import Dag
from legato_rt.order.heft import Links
from legato_rt.order.ranks import seconds_of


class Shop(NamedTuple):
    """Tasks, and workers that fall into groups with the same times.

    Attributes
    ----------
    successor_start, successors, predecessor_start, predecessors : array
        As in `Dag`.
    sizes : array, shape (edges,)
        Bytes that each predecessor hands over.
    waits : array of int, shape (tasks,)
        Predecessors of each task.
    order : array of int, shape (tasks,)
        A topological order.
    seconds : array, shape (tasks, groups)
        Infinite where a task cannot run.
    group_of : array of int, shape (workers,)
    workers : array of int, shape (groups,)
        How many there are in each group.
    memory_of : array of int, shape (workers,)
        The first worker that each shares its memory with.
    seconds_per_byte, latency_s : array, shape (workers, workers)
    linked : bool
        Whether transfers cost anything.
    """

    successor_start: Ints
    successors: Ints
    predecessor_start: Ints
    predecessors: Ints
    sizes: Floats
    waits: Ints
    order: Ints
    seconds: Floats
    group_of: Ints
    workers: Ints
    memory_of: Ints
    seconds_per_byte: Floats
    latency_s: Floats
    linked: bool


def make_shop(dag: Dag, seconds: npt.ArrayLike, links: Links | None = None) -> Shop:
    """Arrays of a graph whose tasks take ``seconds``, of shape (tasks, workers)."""
    table = seconds_of(seconds, len(dag))
    columns, first, group_of = np.unique(table, axis=1, return_index=True, return_inverse=True)
    del columns
    costs = links or Links.none(table.shape[1])
    return Shop(
        dag.successor_start,
        dag.successors,
        dag.predecessor_start,
        dag.predecessors,
        dag.predecessor_bytes,
        np.diff(dag.predecessor_start).astype(np.int32),
        dag.order,
        np.ascontiguousarray(table[:, first]),
        group_of.reshape(-1).astype(np.int32),
        np.bincount(group_of.reshape(-1)).astype(np.int64),
        np.argmin(costs.seconds_per_byte + costs.latency_s, axis=1).astype(np.int32),
        np.ascontiguousarray(costs.seconds_per_byte),
        np.ascontiguousarray(costs.latency_s),
        bool(costs.seconds_per_byte.any() or costs.latency_s.any()),
    )


def by_speed(shop: Shop) -> Ints:
    """Each task's fastest group."""
    return np.argmin(shop.seconds, axis=1).astype(np.int32)
