"""A graph and a machine as the arrays that compiled schedulers run on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from legato_rt.order.arrays import Floats, Ints
from legato_rt.order.dag import Dag
from legato_rt.order.heft import Links
from legato_rt.order.ranks import seconds_of

ALIKE = 0.1
"""Relative difference of times up to which workers count as equal."""


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
    """Arrays of a graph whose tasks take ``seconds``, of shape (tasks, workers).

    Workers whose times differ little count as equal, with their mean times.
    """
    table = seconds_of(seconds, len(dag))
    group_of = _groups(table)
    workers = np.bincount(group_of)
    means = [table[:, group_of == group].mean(axis=1) for group in range(len(workers))]
    costs = links or Links.none(table.shape[1])
    return Shop(
        dag.successor_start,
        dag.successors,
        dag.predecessor_start,
        dag.predecessors,
        dag.predecessor_bytes,
        np.diff(dag.predecessor_start).astype(np.int32),
        dag.order,
        np.ascontiguousarray(np.transpose(means)),
        group_of,
        workers.astype(np.int64),
        np.argmin(costs.seconds_per_byte + costs.latency_s, axis=1).astype(np.int32),
        np.ascontiguousarray(costs.seconds_per_byte),
        np.ascontiguousarray(costs.latency_s),
        bool(costs.seconds_per_byte.any() or costs.latency_s.any()),
    )


def _groups(table: Floats) -> Ints:
    """Put each worker with the first one that it is like."""
    group_of = np.zeros(table.shape[1], dtype=np.int32)
    firsts: list[int] = []
    for worker, column in enumerate(table.T):
        for group, first in enumerate(firsts):
            if np.allclose(column, table[:, first], rtol=ALIKE, atol=0.0):
                group_of[worker] = group
                break
        else:
            group_of[worker] = len(firsts)
            firsts.append(worker)
    return group_of


def by_speed(shop: Shop) -> Ints:
    """Each task's fastest group."""
    fastest: Ints = np.argmin(shop.seconds, axis=1).astype(np.int32)
    return fastest
