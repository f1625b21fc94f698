"""HEFT with insertion by lists alone, and random instances for it."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import numpy.typing as npt

from legato_rt.order import Dag, Links

Floats = npt.NDArray[np.float64]


def random_dag(draw: random.Random, tasks: int, density: float, shuffled: bool = True) -> Dag:
    """A random graph whose numbers are in no topological order, unless it is not shuffled."""
    numbers = list(range(tasks))
    if shuffled:
        draw.shuffle(numbers)
    pairs = [
        (numbers[i], numbers[j]) for j in range(tasks) for i in range(j) if draw.random() < density
    ]
    sizes = [draw.choice([0.0, draw.uniform(0, 20)]) for _ in pairs]
    return Dag.from_edges(tasks, [a for a, _ in pairs], [b for _, b in pairs], sizes)


def random_seconds(draw: random.Random, tasks: int, workers: int) -> Floats:
    """Times with ties, zeros, and workers that cannot run everything."""
    values: list[float] = [0.0, 1.0, 2.0, draw.uniform(0, 5), draw.uniform(0, 50)]
    table = np.array([[draw.choice(values) for _ in range(workers)] for _ in range(tasks)])
    for row in table:
        for column in draw.sample(range(workers), draw.randrange(workers)):
            row[column] = np.inf
    return table.reshape(tasks, workers)


def random_links(draw: random.Random, workers: int) -> Links:
    """Transfers that cost something else on every pair."""
    costs: Any = np.array([[draw.uniform(0, 1) for _ in range(workers)] for _ in range(workers)])
    apart = 1.0 - np.eye(workers)
    return Links(costs * apart, costs.T * apart)


def plain_heft(
    dag: Dag, seconds: Floats, links: Links, sequence: list[int]
) -> tuple[list[int], list[float], list[float]]:
    """Worker, start and finish of each task, planned in the given sequence."""
    workers = seconds.shape[1]
    busy: list[list[tuple[float, float]]] = [[] for _ in range(workers)]
    where, start, finish = ([0] * len(dag), [0.0] * len(dag), [0.0] * len(dag))
    incoming: list[list[tuple[int, float]]] = [[] for _ in range(len(dag))]
    for task in range(len(dag)):
        low, high = dag.predecessor_start[task], dag.predecessor_start[task + 1]
        sizes = dag.predecessor_bytes[low:high].tolist()
        incoming[task] = list(zip(dag.before(task).tolist(), sizes, strict=True))
    for task in sequence:
        best = (np.inf, -1, 0.0)
        for worker in range(workers):
            took = float(seconds[task, worker])
            ready = 0.0
            for before, size in incoming[task]:
                at = finish[before]
                if where[before] != worker and size > 0:
                    pair = where[before], worker
                    cost = float(links.latency_s[pair])
                    at += cost + size * float(links.seconds_per_byte[pair])
                ready = max(ready, at)
            begin = first_gap(busy[worker], ready, took)
            if begin + took < best[0]:
                best = (begin + took, worker, begin)
        finish[task], where[task], start[task] = best
        if seconds[task, where[task]] > 0:
            busy[where[task]].append((start[task], finish[task]))
            busy[where[task]].sort()
    return where, start, finish


def first_gap(busy: list[tuple[float, float]], ready: float, took: float) -> float:
    """The first moment from ``ready`` on with room before the next interval."""
    if took == 0:
        return ready
    begin = ready
    for start, end in busy:
        if begin + took <= start:
            break
        begin = max(begin, end)
    return begin
