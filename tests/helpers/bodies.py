"""What tasks of random programs do to data: updates that do not commute, and digests to compare."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.helpers.views import roots, touched

PRIME = 251

Ints = npt.NDArray[np.int64]


class Box:
    """A mutable object that is no array."""

    def __init__(self, value: int) -> None:
        self.value = value


class PlannedError(Exception):
    """Raised by a body because the program says so."""


def world() -> list[Any]:
    """Fresh data of every kind: arrays, buffers, and objects known by identity."""
    memory = bytearray(range(40))
    return [
        *roots(),
        Box(3),
        [1, 2, 3],
        {"k": 5, "l": 7},
        memory,
        np.frombuffer(memory, np.uint8)[8:32],
        memoryview(memory)[4:36:2],
    ]


def as_array(item: Any) -> Any:
    """An array over the memory of a buffer; anything else as it is."""
    return np.asarray(memoryview(item)) if isinstance(item, bytearray | memoryview) else item


def numbers(item: Any) -> Ints:
    """All numbers in a piece of data, in order, from 0 to 250."""
    item = as_array(item)
    if isinstance(item, np.ndarray):
        names = item.dtype.names
        if names is None:
            return item.ravel().astype(np.int64) % PRIME
        return _joined(numbers(item[name]) for name in names)
    if isinstance(item, dict):
        item = list(item.values())
    if isinstance(item, list | tuple):
        return _joined(map(numbers, item))
    if isinstance(item, Box):
        item = item.value
    return np.array([] if item is None else [item % PRIME], np.int64)


def _joined(parts: Iterable[Ints]) -> Ints:
    return np.concatenate([np.zeros(0, np.int64), *parts])


def digest(*items: Any) -> int:
    """One number that depends on every number and on their order."""
    found = numbers(items)
    weights = (np.arange(len(found), dtype=np.int64) * 7 + 3) % PRIME
    return int((found * weights).sum() % PRIME)


def fingerprint(item: Any) -> str:
    """Equal only for equal contents."""
    return hashlib.sha256(numbers(item).tobytes()).hexdigest()[:16]


def update(item: Any, a: int, b: int) -> None:
    """Replace every number x in a piece of data by a·x + b modulo 251."""
    _assign(item, lambda found: (found * a + b) % PRIME)


def fill(item: Any, seed: int) -> None:
    """Overwrite every number in a piece of data."""
    _assign(item, lambda found: (np.arange(len(found), dtype=np.int64) * 3 + seed) % PRIME)


def _assign(item: Any, change: Any) -> None:
    item = as_array(item)
    if isinstance(item, np.ndarray):
        if item.dtype.names is None:
            item[...] = change(numbers(item)).reshape(item.shape)
        else:
            for name in item.dtype.names:
                _assign(item[name], change)
    elif isinstance(item, Box):
        item.value = int(change(numbers(item))[0])
    elif isinstance(item, list | dict):
        for key in item if isinstance(item, dict) else range(len(item)):
            if isinstance(item[key], int):
                item[key] = int(change(numbers(item[key]))[0])
            else:
                _assign(item[key], change)
    elif isinstance(item, tuple):
        for part in item:
            _assign(part, change)


def leaves(item: Any) -> Iterator[Any]:
    """The data in an argument that children can be given: arrays, buffers, boxes, numbers."""
    if isinstance(item, np.ndarray | bytearray | memoryview | Box):
        yield item
    elif isinstance(item, list | dict | tuple):
        parts = list(item.values()) if isinstance(item, dict) else list(item)
        found = [leaf for part in parts for leaf in leaves(part)]
        if not isinstance(item, tuple) and any(isinstance(part, int) for part in parts):
            yield item
        yield from found


def places(item: Any) -> frozenset[Any]:
    """Where a piece of data is: addresses of its bytes, identities of what is no array."""
    item = as_array(item)
    if isinstance(item, np.ndarray):
        return touched(item)
    found: set[Any] = set()
    if isinstance(item, list | dict | Box):
        found.add(("object", id(item)))
    if isinstance(item, list | dict | tuple):
        for part in item.values() if isinstance(item, dict) else item:
            found |= places(part)
    return frozenset(found)
