"""Compiled passes over a graph in topological order."""

from __future__ import annotations

import numpy as np

from legato_rt.order.arrays import Floats, Ints
from legato_rt.order.jit import compiled


@compiled
def topological(start: Ints, successors: Ints, waiting: Ints) -> Ints:
    """Kahn's algorithm; the result is shorter than the graph if that has a cycle.

    ``waiting`` holds the number of predecessors of each task, and is used up.
    """
    tasks = len(waiting)
    order = np.empty(tasks, dtype=np.int32)
    found = 0
    for task in range(tasks):
        if waiting[task] == 0:
            order[found] = task
            found += 1
    done = 0
    while done < found:
        task = order[done]
        done += 1
        for edge in range(start[task], start[task + 1]):
            other = successors[edge]
            waiting[other] -= 1
            if waiting[other] == 0:
                order[found] = other
                found += 1
    return order[:found].copy()


@compiled
def levels(order: Ints, start: Ints, successors: Ints) -> Ints:
    """Edges on the longest path to each task."""
    depth = np.zeros(len(order), dtype=np.int32)
    for task in order:
        below = depth[task] + 1
        for edge in range(start[task], start[task + 1]):
            other = successors[edge]
            if depth[other] < below:
                depth[other] = below
    return depth


@compiled
def longest_after(
    order: Ints,
    start: Ints,
    successors: Ints,
    sizes: Floats,
    weights: Floats,
    seconds_per_byte: float,
    latency_s: float,
) -> Floats:
    """Length of the longest path from the start of each task to the end of the graph."""
    length = np.zeros(len(order))
    for at in range(len(order) - 1, -1, -1):
        task = order[at]
        longest = 0.0
        for edge in range(start[task], start[task + 1]):
            path = length[successors[edge]]
            if sizes[edge] > 0.0:
                path += latency_s + sizes[edge] * seconds_per_byte
            if path > longest:
                longest = path
        length[task] = weights[task] + longest
    return length
