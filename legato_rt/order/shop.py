"""A graph and a machine as the arrays that compiled schedulers run on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from legato_rt.order.arrays import Floats, Ints
from legato_rt.order.dag import Dag
from legato_rt.order.heft import Links

ALIKE = 0.1
"""Relative difference of times up to which workers count as equal."""


class Shop(NamedTuple):
    """Tasks, and workers that fall into pools with the same times.

    A task runs in a *mode*: in a pool, at an operating point.  The first modes are those of each
    pool at its usual point, in order.

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
    seconds, joules : array, shape (tasks, modes)
        Seconds are infinite where a task cannot run; joules are over what an idle worker draws.
    pool : array of int, shape (modes,)
    pool_of : array of int, shape (workers,)
    workers : array of int, shape (pools,)
        How many there are in each pool.
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
    joules: Floats
    pool: Ints
    pool_of: Ints
    workers: Ints
    memory_of: Ints
    seconds_per_byte: Floats
    latency_s: Floats
    linked: bool


def make_shop(
    dag: Dag,
    seconds: npt.ArrayLike,
    joules: npt.ArrayLike | None = None,
    links: Links | None = None,
) -> tuple[Shop, Ints]:
    """Arrays of a graph and a machine, and the operating point of each mode.

    Parameters
    ----------
    seconds, joules : array_like, shape (n, workers) or (n, workers, points)
        The usual operating point comes first; seconds are infinite where a task cannot run, or a
        worker has no such point.  Workers whose times differ little count as equal.
    """
    times = np.asarray(seconds, dtype=np.float64)
    times = times[:, :, np.newaxis] if times.ndim == 2 else times
    energy = np.zeros_like(times) if joules is None else np.asarray(joules, dtype=np.float64)
    pool_of = _pools(times)
    modes, columns, spent = _modes(times, energy.reshape(times.shape), pool_of)
    costs = links or Links.none(times.shape[1])
    shop = Shop(
        dag.successor_start,
        dag.successors,
        dag.predecessor_start,
        dag.predecessors,
        dag.predecessor_bytes,
        np.diff(dag.predecessor_start).astype(np.int32),
        dag.order,
        columns,
        spent,
        np.array([pool for pool, _ in modes], np.int32),
        pool_of,
        np.bincount(pool_of).astype(np.int64),
        np.argmin(costs.seconds_per_byte + costs.latency_s, axis=1).astype(np.int32),
        np.ascontiguousarray(costs.seconds_per_byte),
        np.ascontiguousarray(costs.latency_s),
        bool(costs.seconds_per_byte.any() or costs.latency_s.any()),
    )
    return shop, np.array([point for _, point in modes], np.int32)


def _modes(
    times: Floats, energy: Floats, pool_of: Ints
) -> tuple[list[tuple[int, int]], Floats, Floats]:
    """Every pool and operating point that any task can use, with the mean times and energies."""
    pools, points = int(pool_of.max()) + 1, times.shape[2]
    modes = [(pool, point) for point in range(points) for pool in range(pools)]
    columns = {m: times[:, pool_of == m[0], m[1]].mean(axis=1) for m in modes}
    modes = [m for m in modes if m[1] == 0 or np.isfinite(columns[m]).any()]
    spent = [energy[:, pool_of == pool, point].mean(axis=1) for pool, point in modes]
    shape = len(times), len(modes)
    seconds = np.ascontiguousarray(np.transpose([columns[m] for m in modes])).reshape(shape)
    return modes, seconds, np.ascontiguousarray(np.transpose(spent)).reshape(shape)


def _pools(times: Floats) -> Ints:
    """Put each worker with the first one that it is like."""
    pool_of = np.zeros(times.shape[1], dtype=np.int32)
    firsts: list[int] = []
    for worker in range(times.shape[1]):
        for pool, first in enumerate(firsts):
            if np.allclose(times[:, worker], times[:, first], rtol=ALIKE, atol=0.0):
                pool_of[worker] = pool
                break
        else:
            pool_of[worker] = len(firsts)
            firsts.append(worker)
    return pool_of


def by_speed(shop: Shop) -> Ints:
    """Each task's fastest pool at its usual point."""
    fastest: Ints = np.argmin(shop.seconds[:, : len(shop.workers)], axis=1).astype(np.int32)
    return fastest
