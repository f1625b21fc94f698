"""Micro-benchmarks of the hot path, each over 1,000 tasks or calls; run by ``make bench``.

`test_reference` is plain Python of the same kind, doing what any runtime must do for a task: divide
by it to compare figures of two machines, or of two days.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import legato_rt as lrt
from legato_rt import InOut

COUNT = 1000
SIDE = 32

Array = npt.NDArray[Any]


@lrt.task
def empty() -> None:
    """Do nothing."""


@lrt.task
def forward(value: object) -> None:
    """Do nothing with a value."""


@lrt.task
def touch(x: InOut[Array]) -> None:
    """Do nothing with an array."""


@pytest.fixture(params=["serial", "threads"])
def runtime(request: pytest.FixtureRequest) -> Iterator[lrt.Runtime]:
    """A runtime with one worker: what a task costs, without the hand-over between threads."""
    with lrt.Runtime(workers=1, devices="cpu", executor=request.param) as opened:
        yield opened


@pytest.mark.benchmark(group="reference")
def test_reference(benchmark: Any) -> None:
    class Item:
        __slots__ = ("call", "done", "value")

        def __init__(self, call: Any) -> None:
            self.call = call
            self.value: object = None
            self.done = False

    def run() -> None:
        queue: deque[Item] = deque()
        for _ in range(COUNT):
            queue.append(Item(empty.function))
        while queue:
            item = queue.popleft()
            item.value = item.call()
            item.done = True

    benchmark(run)


@pytest.mark.benchmark(group="submit and run")
def test_independent(benchmark: Any, runtime: lrt.Runtime) -> None:
    def run() -> None:
        for _ in range(COUNT):
            empty.submit()
        runtime.wait()

    benchmark(run)


@pytest.mark.benchmark(group="submit and run")
def test_chain_of_futures(benchmark: Any, runtime: lrt.Runtime) -> None:
    def run() -> None:
        future: object = None
        for _ in range(COUNT):
            future = forward.submit(future)
        runtime.wait()

    benchmark(run)


@pytest.mark.benchmark(group="submit and run")
def test_one_known_view(benchmark: Any, runtime: lrt.Runtime) -> None:
    """The view is found by its identity."""
    view = np.zeros((SIDE, SIDE))[1:, 1:]

    def run() -> None:
        for _ in range(COUNT):
            touch.submit(view)
        runtime.wait()

    benchmark(run)


@pytest.mark.benchmark(group="submit and run")
def test_known_views(benchmark: Any, runtime: lrt.Runtime) -> None:
    """The same tiles again and again: each is found by its identity."""
    tiles = list(lrt.tiles(np.zeros((SIDE * 2, SIDE * 2)), 2).flat)[:COUNT]

    def run() -> None:
        for tile in tiles:
            touch.submit(tile)
        runtime.wait()

    benchmark(run)


@pytest.mark.benchmark(group="submit and run")
def test_fresh_views(benchmark: Any, runtime: lrt.Runtime) -> None:
    """Every view is a new object: it is found by where its memory lies."""
    rows = np.zeros((COUNT, SIDE))

    def run() -> None:
        for number in range(COUNT):
            touch.submit(rows[number])
        runtime.wait()

    benchmark(run)


@pytest.mark.benchmark(group="submit and run")
def test_fresh_arrays(benchmark: Any, runtime: lrt.Runtime) -> None:
    """Every array is one that was never seen before."""

    def run() -> None:
        for _ in range(COUNT):
            touch.submit(np.zeros(SIDE))
        runtime.wait()

    benchmark(run)


@pytest.mark.benchmark(group="plain call")
def test_plain_call_beside_an_open_runtime(benchmark: Any, runtime: lrt.Runtime) -> None:
    array = np.zeros(SIDE)

    def run() -> None:
        for _ in range(COUNT):
            touch(array)

    benchmark(run)
