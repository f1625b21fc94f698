"""Ranks: how long the longest path from or to each task is.

The upward rank of a task is the length of the longest path from its start to the end of the graph,
with mean times of tasks and of transfers; the downward rank is that from the start of the graph to
its own start.  Source: H. Topcuoglu, S. Hariri, M.-Y. Wu, Performance-effective and low-complexity
task scheduling for heterogeneous computing, IEEE TPDS 13(3), 2002.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from legato_rt.errors import UsageError
from legato_rt.order.arrays import Floats, Ints
from legato_rt.order.dag import Dag

Rule = Literal["mean", "fastest", "slowest", "median"] | Sequence[float] | Floats


def seconds_of(seconds: npt.ArrayLike, tasks: int) -> Floats:
    """Check a table of times, shape (tasks, workers); infinite where a worker cannot run a task.

    Raises
    ------
    UsageError
        Naming a task that no worker can run, or whose time is negative.
    """
    table = np.ascontiguousarray(seconds, dtype=np.float64)
    if tasks == 0 and table.shape == (0,):
        table = np.zeros((0, 1))
    if table.ndim != 2 or table.shape[0] != tasks or table.shape[1] == 0:
        raise UsageError(f"times of {tasks} tasks on each worker are needed, not {table.shape}")
    wrong = np.isnan(table).any(axis=1) | (table < 0).any(axis=1)
    if wrong.any():
        raise UsageError(f"task {int(np.argmax(wrong))} has a negative or unknown time")
    nowhere = ~np.isfinite(table).any(axis=1)
    if nowhere.any():
        raise UsageError(f"task {int(np.argmax(nowhere))} can run on no worker")
    return table


def weights(seconds: npt.ArrayLike, rule: Rule = "mean") -> Floats:
    """One time for each task out of its times on several workers.

    Parameters
    ----------
    seconds : array_like, shape (n, workers)
        Infinite where a worker cannot run the task; it is then left out.
    rule : {"mean", "fastest", "slowest", "median"} or sequence of float
        Or a weight for each worker, for the mean weighted by them.

    Returns
    -------
    array of float64, shape (n,)
    """
    table = np.asarray(seconds, dtype=np.float64)
    table = seconds_of(table, len(table))
    runs = np.isfinite(table)
    if isinstance(rule, str):
        if rule == "fastest":
            return np.asarray(table.min(axis=1))
        if rule == "slowest":
            return np.asarray(np.where(runs, table, -np.inf).max(axis=1))
        if rule == "median":
            return np.asarray(np.nanmedian(np.where(runs, table, np.nan), axis=1))
        if rule != "mean":
            raise UsageError(f"unknown rule {rule!r}: mean, fastest, slowest, median or weights")
        if runs.all():
            return np.asarray(table.mean(axis=1))
        share = np.ones(table.shape[1])
    else:
        share = np.asarray(rule, dtype=np.float64)
    if share.shape != table.shape[1:] or not np.all(share >= 0) or not (runs @ share > 0).all():
        raise UsageError("a weight from zero up is needed for each worker, and some for each task")
    total: Floats = np.where(runs, table, 0.0) @ share
    return np.asarray(total / (runs @ share))


def levels(dag: Dag) -> Ints:
    """Depth of each task: the number of edges on the longest path to it."""
    from legato_rt.order import kernels

    return kernels.levels(dag.order, dag.successor_start, dag.successors)


def upward_rank(
    dag: Dag, weights: npt.ArrayLike, seconds_per_byte: float = 0.0, latency_s: float = 0.0
) -> Floats:
    """Length in seconds of the longest path from the start of each task to the end of the graph.

    Parameters
    ----------
    dag : Dag
    weights : array_like, shape (n,)
        Seconds of each task, see `weights`.
    seconds_per_byte, latency_s : float
        Mean cost of a transfer; an edge of zero bytes costs nothing.
    """
    from legato_rt.order import kernels

    times = np.ascontiguousarray(weights, dtype=np.float64)
    if times.shape != (len(dag),):
        raise UsageError(f"{len(dag)} weights are needed, not {times.shape}")
    return kernels.longest_after(
        dag.order,
        dag.successor_start,
        dag.successors,
        dag.successor_bytes,
        times,
        float(seconds_per_byte),
        float(latency_s),
    )


def downward_rank(
    dag: Dag, weights: npt.ArrayLike, seconds_per_byte: float = 0.0, latency_s: float = 0.0
) -> Floats:
    """Length in seconds of the longest path to each task, without the task itself."""
    times = np.asarray(weights, dtype=np.float64)
    path: Floats = upward_rank(dag.reversed(), times, seconds_per_byte, latency_s) - times
    return path


def critical_path(
    dag: Dag, weights: npt.ArrayLike, seconds_per_byte: float = 0.0, latency_s: float = 0.0
) -> tuple[float, list[int]]:
    """Length in seconds of a longest path through the graph, and the tasks on it."""
    rank = upward_rank(dag, weights, seconds_per_byte, latency_s)
    if not len(dag):
        return 0.0, []
    task = int(np.argmax(rank))
    path = [task]
    while len(after := dag.after(task)):
        low, high = dag.successor_start[task], dag.successor_start[task + 1]
        sizes = dag.successor_bytes[low:high]
        costs = np.where(sizes > 0, latency_s + sizes * seconds_per_byte, 0.0)
        task = int(after[np.argmax(rank[after] + costs)])
        path.append(task)
    return float(rank[path[0]]), path
