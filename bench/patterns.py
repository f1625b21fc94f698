"""Task graphs to measure runtimes with: only who needs whose value, no work.

Independent, stencil, FFT and tree follow the definitions that Task Bench published (Slaughter et
al., SC20): a graph is a grid of ``width`` tasks a step, and a pattern says which tasks of the step
before each task needs.  ``cholesky`` is the tiled right-looking factorisation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import count

WIDTH = 16


@dataclass(frozen=True)
class Pattern:
    """A graph; tasks are numbered in an order in which they can be submitted.

    Attributes
    ----------
    name : str
    needs : list of tuple of int
        For each task, the tasks whose values it gets.
    """

    name: str
    needs: list[tuple[int, ...]]

    def __len__(self) -> int:
        return len(self.needs)

    @cached_property
    def sinks(self) -> list[int]:
        """The tasks whose value no other task gets."""
        needed = {task for tasks in self.needs for task in tasks}
        return [task for task in range(len(self)) if task not in needed]


def independent(tasks: int) -> Pattern:
    """Tasks that need nothing."""
    return Pattern("independent", [()] * tasks)


def chain(tasks: int) -> Pattern:
    """Each task needs the one before."""
    return Pattern("chain", [(), *((task - 1,) for task in range(1, tasks))])


def stencil(tasks: int) -> Pattern:
    """Each task needs its own column and both neighbours of the step before."""
    return _grid("stencil", tasks, lambda step, i: (i - 1, i, i + 1))


def fft(tasks: int) -> Pattern:
    """Butterflies: the distance to the partners doubles from step to step, then starts anew."""
    stages = WIDTH.bit_length() - 1

    def columns(step: int, i: int) -> tuple[int, ...]:
        distance = 1 << ((step - 1) % stages)
        return i - distance, i, i + distance

    return _grid("fft", tasks, columns)


def tree(tasks: int) -> Pattern:
    """A reduction: leaves, then a task for each pair of values until one is left."""
    leaves = (tasks + 1) // 2
    needs: list[tuple[int, ...]] = [()] * leaves
    # A new value goes to the end of the list, so pairs are taken from the front, level by level.
    for left in range(0, 2 * (leaves - 1), 2):
        needs.append((left, left + 1))
    return Pattern("tree", needs)


def cholesky(tasks: int) -> Pattern:
    """Tiled Cholesky factorisation with the largest number of tiles that gives at most ``tasks``.

    A task gets the value of the last one that wrote its tile, then of those that wrote the tiles
    it reads.
    """
    size = next(n for n in count(1) if cholesky_tasks(n + 1) > tasks)
    needs: list[tuple[int, ...]] = []
    writer: dict[tuple[int, int], int] = {}

    def add(tile: tuple[int, int], *reads: tuple[int, int]) -> None:
        needs.append(tuple(writer[t] for t in (tile, *reads) if t in writer))
        writer[tile] = len(needs) - 1

    for k in range(size):
        add((k, k))
        for i in range(k + 1, size):
            add((i, k), (k, k))
        for i in range(k + 1, size):
            add((i, i), (i, k))
            for j in range(k + 1, i):
                add((i, j), (i, k), (j, k))
    return Pattern("cholesky", needs)


def cholesky_tasks(size: int) -> int:
    """How many tasks a factorisation of ``size`` × ``size`` tiles has."""
    return size + size * (size - 1) + size * (size - 1) * (size - 2) // 6


def _grid(name: str, tasks: int, columns: Callable[[int, int], tuple[int, ...]]) -> Pattern:
    """``tasks`` tasks in full steps of `WIDTH`; columns beyond the edge fall away."""
    needs: list[tuple[int, ...]] = [()] * WIDTH
    for step in range(1, max(tasks // WIDTH, 1)):
        before = (step - 1) * WIDTH
        for i in range(WIDTH):
            needs.append(tuple(before + c for c in columns(step, i) if 0 <= c < WIDTH))
    return Pattern(name, needs)


PATTERNS: dict[str, Callable[[int], Pattern]] = {
    make.__name__: make for make in (independent, chain, stencil, fft, tree, cholesky)
}
"""Every pattern by name, made from the number of tasks that it has about."""
