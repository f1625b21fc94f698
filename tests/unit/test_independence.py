"""Accesses that share no element are not ordered; those that share one are."""

import threading
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import legato_rt as lrt
from legato_rt import In, InOut, Out
from legato_rt.node import Node

LIMIT_S = 60.0
POINT = np.dtype([("x", "<f8"), ("y", "<f4"), ("flags", "u1", (3,))])


@lrt.task
def hold(started: threading.Event, gate: threading.Event) -> bool:
    started.set()
    return gate.wait(LIMIT_S)


@lrt.task
def read(x: In[Any]) -> None:
    """Its access is what counts."""


@lrt.task
def overwrite(x: Out[Any]) -> None:
    """Its access is what counts."""


@lrt.task
def update(x: InOut[Any]) -> None:
    """Its access is what counts."""


@pytest.fixture
def held() -> Iterator[lrt.Runtime]:
    """A runtime in which nothing more starts: all its workers are busy until the test is over."""
    gate, started = threading.Event(), [threading.Event() for _ in range(2)]
    with lrt.Runtime(workers=2, policy="fifo", validate=True) as runtime:
        holders = [hold.submit(event, gate) for event in started]
        try:
            assert all(event.wait(LIMIT_S) for event in started)
            yield runtime
        finally:
            gate.set()
        assert all(holder.result(LIMIT_S) for holder in holders)


def waits(future: Any) -> bool:
    assert isinstance(future, Node)
    return future.waiting > 0


def disjoint() -> dict[str, list[Any]]:
    """Pieces of one object that share no element, which together make up all of it."""
    square = np.zeros((8, 8))
    cube = np.zeros((4, 6, 8), np.float32)
    records, octets, wide = np.zeros(9, POINT), bytearray(60), np.zeros(30)
    many = np.zeros((12, 12), np.complex128)
    return {
        "tiles": list(lrt.tiles(square.copy(), 3).flat),
        "rows": list(np.zeros((8, 8))),
        "columns": list(np.zeros((8, 8)).T),
        "columns of a transposed": list(np.zeros((8, 5), order="F").T),
        "checkerboard": [square[i::2, j::2] for i in range(2) for j in range(2)],
        "checkerboard of three": [cube[i::2, j::3, k::2] for i, j, k in np.ndindex(2, 3, 2)],
        "backward": [wide[::-2], wide[::2]],
        "every third": [wide[i::3] for i in range(3)],
        "fields": [records[name] for name in ("x", "y", "flags")],
        "parts of a field": [
            *(records["flags"][:, i] for i in range(3)),
            records["x"][:4],
            records["x"][4:],
            records["y"],
        ],
        "real and imaginary": [many.real, many.imag],
        "bytes": [memoryview(octets)[i : i + 12] for i in range(0, 60, 12)],
        "bytes as numbers": [np.frombuffer(octets, "<i4", 5, i) for i in (0, 20, 40)],
        "planes": [cube[:, i] for i in range(6)],
        "triangle": [square[i, i:] for i in range(8)] + [square[i, :i] for i in range(1, 8)],
    }


@pytest.mark.parametrize("name", disjoint())
def test_disjoint_pieces_are_not_ordered(held: lrt.Runtime, name: str) -> None:
    pieces = disjoint()[name]
    futures = [update.submit(piece) for piece in pieces]
    assert not any(map(waits, futures))
    again = [overwrite.submit(piece) for piece in reversed(pieces)]
    assert all(future.waiting == 1 for future in again)  # type: ignore[attr-defined]
    assert held.report().coarse == 0


@pytest.mark.parametrize("name", disjoint())
def test_a_task_on_the_whole_waits_for_every_piece(held: lrt.Runtime, name: str) -> None:
    pieces = disjoint()[name]
    whole: Any = pieces[0]
    while isinstance(whole, np.ndarray) and isinstance(whole.base, np.ndarray):
        whole = whole.base
    if isinstance(whole, memoryview):
        whole = whole.obj
    elif whole.base is not None:
        whole = whole.base
    futures = [overwrite.submit(piece) for piece in pieces]
    assert not any(map(waits, futures))
    last = read.submit(whole)
    assert last.waiting == len(pieces)  # type: ignore[attr-defined]
    assert all(waits(update.submit(piece)) for piece in pieces)


@pytest.mark.parametrize("first", [read, overwrite, update])
@pytest.mark.parametrize("second", [read, overwrite, update])
def test_pieces_that_share_an_element_are_ordered_unless_both_read(
    held: lrt.Runtime, first: Any, second: Any
) -> None:
    data = np.zeros((9, 9))
    pieces = [data[2], data[:, 3], data[::2, ::3], data[1:4, 2:5], data[::-1, ::-1].T, data[2, 3:]]
    shared = 0
    for one, other in combinations(pieces, 2):
        fresh = np.zeros_like(data)
        where = [(p.__array_interface__["data"][0] - data.ctypes.data) for p in (one, other)]
        views = [
            np.ndarray(p.shape, p.dtype, fresh, offset, p.strides)
            for p, offset in zip((one, other), where, strict=True)
        ]
        conflict = np.shares_memory(views[0], views[1]) and not first is second is read
        shared += np.shares_memory(views[0], views[1])
        first.submit(views[0])
        assert waits(second.submit(views[1])) == conflict
    assert shared >= 8


def test_the_same_byte_seen_as_another_type_is_ordered(held: lrt.Runtime) -> None:
    octets = bytearray(32)
    update.submit(np.frombuffer(octets, "<f8", 1, 8))
    assert waits(read.submit(memoryview(octets)[15:16]))
    assert not waits(read.submit(memoryview(octets)[16:]))
    assert not waits(read.submit(np.frombuffer(octets, "u1", 8)))
    assert waits(read.submit(octets))


def test_different_objects_are_not_ordered(held: lrt.Runtime) -> None:
    class Thing:
        pass

    items: list[Any] = [np.zeros(3), np.zeros(3), bytearray(3), Thing(), Thing()]
    assert not any(waits(update.submit(item)) for item in items)
    assert all(waits(update.submit(item)) for item in items)


def test_an_empty_piece_conflicts_with_nothing(held: lrt.Runtime) -> None:
    data = np.zeros((4, 4))
    update.submit(data)
    assert not waits(update.submit(data[:0]))
    assert not waits(update.submit(data[2:2, 1:]))
    assert waits(update.submit(data[3:, 3:]))
