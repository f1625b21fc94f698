"""Random layered graphs for measuring planners, and HEFT in plain Python to hold ours against.

The graphs are those on which other planners were measured: layers of about the square root of n
tasks, each task after one to four of the two layers before, one source and one sink.  A seed gives
the same graph everywhere, so the draws come from `random.Random`.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from legato_rt import order

SPEEDS = (1.0, 1.5, 2.0, 3.0)
"""Of the four processors."""

BYTES_PER_S = 1.0
MEAN_SECONDS_PER_BYTE = 0.6
"""As anrg-saga counts it: the mean over all unordered pairs, a processor with itself included."""

Edges = dict[tuple[int, int], float]


@dataclass(frozen=True)
class Instance:
    """A graph and what its tasks and edges cost.

    Attributes
    ----------
    edges : dict of (int, int) to float
        Bytes of each edge.
    costs : list of float
        Seconds of each task on a processor of speed 1.
    """

    edges: Edges
    costs: list[float]

    def __len__(self) -> int:
        return len(self.costs)

    def dag(self) -> order.Dag:
        """The graph as arrays."""
        ends = np.array(list(self.edges), dtype=np.int64).reshape(-1, 2)
        return order.Dag.from_edges(
            len(self), ends[:, 0], ends[:, 1], np.array(list(self.edges.values()))
        )

    def seconds(self, speeds: Sequence[float] = SPEEDS) -> npt.NDArray[np.float64]:
        """Times on each processor."""
        times: npt.NDArray[np.float64] = np.array(self.costs)[:, None] / np.array(speeds)
        return times


def layered(tasks: int, seed: int = 7) -> Instance:
    """A random layered graph of about ``tasks`` tasks."""
    draw = random.Random(seed)
    width = max(2, int(tasks**0.5))
    layers = [[0]]
    made = 1
    while made < tasks - 1:
        count = min(tasks - 1 - made, max(1, int(draw.uniform(0.5, 1.5) * width)))
        layers.append(list(range(made, made + count)))
        made += count
    edges: Edges = {}
    for at, layer in enumerate(layers[1:], 1):
        before = layers[at - 1] + (layers[at - 2] if at > 1 else [])
        for task in layer:
            for other in draw.sample(before, min(len(before), draw.randint(1, 4))):
                edges[other, task] = draw.uniform(0, 5)
    inner = {task for task, _ in edges}
    for task in range(made):
        if task not in inner:
            edges[task, made] = draw.uniform(0, 5)
    return Instance(edges, [draw.uniform(1, 10) for _ in range(made + 1)])


def plan(dag: order.Dag, seconds: npt.NDArray[np.float64]) -> order.Schedule:
    """HEFT with the mean transfer cost that the comparison uses."""
    rank = order.upward_rank(dag, order.weights(seconds), MEAN_SECONDS_PER_BYTE)
    links = order.Links.uniform(len(SPEEDS), BYTES_PER_S)
    return order.heft(dag, seconds, links=links, order_by=rank)


def plain_heft(instance: Instance, mean: float = MEAN_SECONDS_PER_BYTE) -> float:
    """The makespan of HEFT with insertion, by lists and bisection; ``mean`` is per byte."""
    after: list[list[tuple[int, float]]] = [[] for _ in instance.costs]
    before: list[list[tuple[int, float]]] = [[] for _ in instance.costs]
    for (first, then), size in instance.edges.items():
        after[first].append((then, size))
        before[then].append((first, size))
    ranks = [0.0] * len(instance)
    for task in reversed(range(len(instance))):  # edges go from lower to higher numbers
        took = sum(instance.costs[task] / speed for speed in SPEEDS) / len(SPEEDS)
        ranks[task] = took + max((ranks[t] + size * mean for t, size in after[task]), default=0.0)
    busy: list[list[tuple[float, float]]] = [[] for _ in SPEEDS]
    where, finish = [0] * len(instance), [0.0] * len(instance)
    for task in sorted(range(len(instance)), key=lambda t: -ranks[t]):
        options = []
        for processor, speed in enumerate(SPEEDS):
            arrivals = [
                finish[t] + (0.0 if where[t] == processor else size / BYTES_PER_S)
                for t, size in before[task]
            ]
            took = instance.costs[task] / speed
            start = _first_gap(busy[processor], max(arrivals, default=0.0), took)
            options.append((start + took, processor, start))
        finish[task], where[task], start = min(options)
        row = busy[where[task]]
        row.insert(bisect_right(row, (start, finish[task])), (start, finish[task]))
    return max(finish)


def _first_gap(busy: list[tuple[float, float]], ready: float, duration: float) -> float:
    start = ready
    for begin, end in busy[max(bisect_right(busy, (ready, 0.0)) - 1, 0) :]:
        if start + duration <= begin:
            break
        start = max(start, end)
    return start
