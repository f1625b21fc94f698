"""Graphs of tasks as arrays.

A graph of n tasks and m edges is kept twice in compressed sparse row form, by successors and by
predecessors.  The successors of task i are ``successors[successor_start[i]:successor_start[i+1]]``
::

    0 ──▶ 1 ──▶ 3        successor_start  0  2  3  4  4
    └───▶ 2 ────▲        successors       1  2  3  3

Every edge has a number of bytes, what the earlier task hands to the later one; an edge of zero
bytes is an order without data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from legato_rt.errors import UsageError
from legato_rt.order.arrays import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Dag:
    """A directed acyclic graph of n tasks and m edges; make one with `from_edges`.

    Attributes
    ----------
    successor_start, predecessor_start : array of int64, shape (n + 1,)
    successors, predecessors : array of int32, shape (m,)
    successor_bytes, predecessor_bytes : array of float64, shape (m,)
    order : array of int32, shape (n,)
        A topological order; that of the indexes where it is one.
    names : tuple of str
        One for each task, or empty.
    """

    successor_start: Ints
    successors: Ints
    successor_bytes: Floats
    predecessor_start: Ints
    predecessors: Ints
    predecessor_bytes: Floats
    order: Ints
    names: tuple[str, ...] = ()

    @classmethod
    def from_edges(
        cls,
        tasks: int,
        sources: npt.ArrayLike,
        targets: npt.ArrayLike,
        sizes: npt.ArrayLike | None = None,
        names: Sequence[str] = (),
    ) -> Dag:
        """Make a graph of ``tasks`` tasks, numbered from 0, by its edges.

        Parameters
        ----------
        sources, targets : array_like of int, shape (m,)
            Each edge's earlier and later task.
        sizes : array_like, shape (m,), optional
            Bytes of each edge; zero by default.
        names : sequence of str, optional

        Raises
        ------
        UsageError
            If the edges form a cycle, which is then named, or have no such tasks or sizes.
        """
        before, after = _indexes(tasks, sources), _indexes(tasks, targets)
        weights = _sizes(sizes, len(before))
        if not len(before) == len(after) == len(weights):
            raise UsageError("sources, targets and sizes are not of one length")
        if names and len(names) != tasks:
            raise UsageError(f"{tasks} tasks have {len(names)} names")
        successor_start, by_source = _grouped(before, tasks)
        predecessor_start, by_target = _grouped(after, tasks)
        successors, predecessors = after[by_source], before[by_target]
        order = _order(successor_start, successors, predecessor_start, bool((before < after).all()))
        if len(order) < tasks:
            left = np.setdiff1d(np.arange(tasks), order)
            raise _cyclic(_cycle(left, predecessor_start, predecessors), names)
        forth = successor_start, successors, weights[by_source]
        back = predecessor_start, predecessors, weights[by_target]
        return cls(*forth, *back, order, tuple(names))

    @classmethod
    def from_predecessors(
        cls, predecessors: Iterable[Iterable[int]], names: Sequence[str] = ()
    ) -> Dag:
        """Make a graph of each task's predecessors, without bytes."""
        lists = [list(before) for before in predecessors]
        sources = [task for before in lists for task in before]
        targets = np.repeat(np.arange(len(lists)), [len(before) for before in lists])
        return cls.from_edges(len(lists), sources, targets, names=names)

    @classmethod
    def from_networkx(cls, graph: Any, size: str = "bytes") -> Dag:
        """Make a graph of a `networkx.DiGraph`.

        Parameters
        ----------
        graph : networkx.DiGraph
            Its nodes become the tasks in their order there, named by ``str``.
        size : str
            The edge attribute that holds the bytes; zero where it is missing.
        """
        index = {node: i for i, node in enumerate(graph)}
        edges = list(graph.edges(data=size, default=0.0))
        return cls.from_edges(
            len(index),
            [index[edge[0]] for edge in edges],
            [index[edge[1]] for edge in edges],
            [edge[2] for edge in edges],
            [str(node) for node in index],
        )

    def to_networkx(self, **attributes: Sequence[Any] | npt.NDArray[Any]) -> Any:
        """The same graph as a `networkx.DiGraph` of the task numbers.

        Parameters
        ----------
        **attributes
            Node attributes, a value for each task.

        Returns
        -------
        networkx.DiGraph
            With ``bytes`` on each edge, and ``name`` on each node where there are names.
        """
        import networkx

        columns: Mapping[str, Sequence[Any] | npt.NDArray[Any]] = attributes
        if self.names:
            columns = {"name": self.names, **attributes}
        graph = networkx.DiGraph()
        for task in range(len(self)):
            graph.add_node(task, **{key: column[task] for key, column in columns.items()})
        sources = np.repeat(np.arange(len(self)), np.diff(self.successor_start))
        edges = zip(
            sources.tolist(), self.successors.tolist(), self.successor_bytes.tolist(), strict=True
        )
        graph.add_weighted_edges_from(edges, weight="bytes")
        return graph

    def __len__(self) -> int:
        """Number of tasks."""
        return len(self.order)

    @property
    def edges(self) -> int:
        """Number of edges."""
        return len(self.successors)

    def after(self, task: int) -> Ints:
        """The successors of a task."""
        return self.successors[self.successor_start[task] : self.successor_start[task + 1]]

    def before(self, task: int) -> Ints:
        """The predecessors of a task."""
        return self.predecessors[self.predecessor_start[task] : self.predecessor_start[task + 1]]

    def reversed(self) -> Dag:
        """The graph with every edge turned round."""
        return Dag(
            self.predecessor_start,
            self.predecessors,
            self.predecessor_bytes,
            self.successor_start,
            self.successors,
            self.successor_bytes,
            self.order[::-1].copy(),
            self.names,
        )


def _indexes(tasks: int, values: npt.ArrayLike) -> Ints:
    given = np.asarray(values)
    if given.size == 0:
        return np.zeros(0, dtype=np.int32)
    if given.ndim != 1 or not np.issubdtype(given.dtype, np.integer):
        raise UsageError("edges are given as whole numbers of tasks")
    if given.min() < 0 or given.max() >= tasks:
        wrong = given.min() if given.min() < 0 else given.max()
        raise UsageError(f"an edge names task {wrong}; there are {tasks}, numbered from 0")
    return given.astype(np.int32)


def _grouped(keys: Ints, tasks: int) -> tuple[Ints, Ints]:
    """Where each task's edges start when they are grouped by ``keys``, and their order then."""
    start = np.zeros(tasks + 1, dtype=np.int64)
    np.cumsum(np.bincount(keys, minlength=tasks), out=start[1:])
    return start, np.argsort(keys, kind="stable")


def _sizes(sizes: npt.ArrayLike | None, edges: int) -> Floats:
    if sizes is None:
        return np.zeros(edges)
    weights = np.asarray(sizes, dtype=np.float64)
    if not np.all((weights >= 0) & np.isfinite(weights)):
        raise UsageError("the size of an edge is a number of bytes from zero up")
    return weights


def _order(start: Ints, successors: Ints, predecessor_start: Ints, by_index: bool) -> Ints:
    counts = np.diff(predecessor_start).astype(np.int32)
    if by_index:
        return np.arange(len(counts), dtype=np.int32)
    from legato_rt.order import kernels

    return kernels.topological(start, successors, counts)


def _cyclic(cycle: list[int], names: Sequence[str]) -> UsageError:
    shown = " -> ".join(names[i] if names else str(i) for i in cycle)
    return UsageError(f"the graph has a cycle: {shown}")


def _cycle(left: Ints, start: Ints, predecessors: Ints) -> list[int]:
    """A cycle among tasks each of which has a predecessor among them, in the edges' direction."""
    inside = set(left.tolist())
    path: list[int] = []
    seen: dict[int, int] = {}
    task = int(left[0])
    while task not in seen:
        seen[task] = len(path)
        path.append(task)
        before = predecessors[start[task] : start[task + 1]].tolist()
        task = next(other for other in before if other in inside)
    return [task, *path[seen[task] + 1 :][::-1], task]
