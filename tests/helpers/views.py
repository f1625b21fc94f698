"""Random views of arrays as plain data, and the bytes that a view touches, by brute force."""

import random
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

Array = npt.NDArray[Any]

MAX_NDIM = 4


class Step(NamedTuple):
    """One operation on a view; the numbers are taken modulo what the view allows."""

    kind: str
    p: int = 0
    q: int = 0
    r: int = 1


KINDS = ("slice", "index", "reverse", "transpose", "reshape", "field", "newaxis", "diagonal")

small = st.integers(0, 7)
steps = st.lists(
    st.builds(Step, st.sampled_from(KINDS), small, small, st.sampled_from((1, 2, 3, -1, -2, -3))),
    max_size=3,
).map(tuple)


def view(array: Array, chain: tuple[Step, ...]) -> Array:
    """Apply steps to an array; always a view, never a copy."""
    for step in chain:
        array = _apply(array, step)
    return array


def _apply(array: Array, step: Step) -> Array:
    kind, p, q, r = step
    ndim = array.ndim
    if kind == "newaxis":
        return np.expand_dims(array, p % (ndim + 1)) if ndim < MAX_NDIM else array
    if kind == "field":
        return _field(array, p)
    if ndim == 0:
        return array
    axis = p % ndim
    n = array.shape[axis]
    if kind == "slice":
        return _slice(array, axis, q, r)
    if kind == "index":
        return array if n == 0 else array[(slice(None),) * axis + (q % n, ...)]
    if kind == "reverse":
        return np.flip(array, axis)
    if kind == "transpose":
        return np.moveaxis(array, axis, q % ndim)
    if kind == "reshape":
        return _reshape(array, axis, q)
    return _diagonal(array)


def _slice(array: Array, axis: int, q: int, r: int) -> Array:
    n = array.shape[axis]
    low = q % (n + 1)
    high = min(n, low + 1 + (q * 5 + abs(r)) % (n + 1))
    cut = slice(low, high, r) if r > 0 else slice(high - 1, low - 1 if low else None, r)
    return array[(slice(None),) * axis + (cut,)]


def _field(array: Array, p: int) -> Array:
    """A field of a structured array; else the raw bytes, where NumPy can show them."""
    names = array.dtype.names
    if names is not None:
        chosen = array[names[p % len(names)]]
        return chosen if chosen.ndim <= MAX_NDIM else array
    if array.ndim and array.strides[-1] == array.itemsize and p % 3 == 0:
        return array.view(np.uint8)
    return array


def _reshape(array: Array, axis: int, q: int) -> Array:
    n = array.shape[axis]
    if q % 2 or array.ndim == MAX_NDIM:
        shape: tuple[int, ...] = (array.size,)
    else:
        parts = next((d for d in (2, 3, 5) if n and n % d == 0), 1)
        shape = (*array.shape[:axis], parts, n // parts, *array.shape[axis + 1 :])
    changed = array.reshape(shape)
    return changed if np.may_share_memory(changed, array) else array


def _diagonal(array: Array) -> Array:
    if array.ndim != 2 or array.dtype.names is not None or 0 in array.shape:
        return array
    return as_strided(array, (min(array.shape),), (sum(array.strides),))


def touched(array: Array) -> frozenset[int]:
    """Addresses of all bytes that the elements of an array occupy."""
    if array.size == 0 or array.itemsize == 0:
        return frozenset()
    start = array.__array_interface__["data"][0]
    offsets = np.zeros(array.shape, np.int64)
    for axis, (n, stride) in enumerate(zip(array.shape, array.strides, strict=True)):
        shape = [1] * array.ndim
        shape[axis] = n
        offsets = offsets + (np.arange(n, dtype=np.int64) * stride).reshape(shape)
    firsts = np.unique(offsets) + start
    return frozenset((firsts[:, None] + np.arange(array.itemsize)[None, :]).ravel().tolist())


def roots() -> list[Array]:
    """Arrays of different shapes, orders and types to take views of."""
    record = np.dtype([("a", "i4"), ("b", "i2", (2,)), ("c", "u1")])
    padded = np.dtype({"names": ["a", "b"], "formats": ["u1", "i4"], "offsets": [2, 8]})
    return [
        np.arange(24, dtype=np.int64),
        np.arange(48, dtype=np.int32).reshape(6, 8),
        np.arange(48, dtype=np.int16).reshape(8, 6).T,
        np.arange(96, dtype=np.uint8).reshape(2, 6, 4, 2),
        np.arange(60, dtype=">i4").reshape(3, 4, 5)[:, ::-1],
        np.zeros(10, record),
        np.zeros((3, 4), padded),
        np.array(7, np.int64),
    ]


def random_view(array: Array, rng: random.Random) -> Array:
    """A view by up to four random steps."""
    chain = [
        Step(rng.choice(KINDS), rng.randrange(8), rng.randrange(8), rng.choice((1, 2, 3, -1, -2)))
        for _ in range(rng.randrange(5))
    ]
    return view(array, tuple(chain))


def strided_view(memory: Array, rng: random.Random) -> Array:
    """A view of a byte buffer with any strides, also such that its own elements overlap."""
    ndim = rng.randrange(MAX_NDIM + 1)
    size = rng.choice((1, 1, 2, 4, 8))
    shape = tuple(rng.randrange(1, 6) for _ in range(ndim))
    strides = tuple(rng.choice((1, -1)) * rng.randrange(0, 40) for _ in range(ndim))
    reach = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
    low, high = -sum(r for r in reach if r < 0), sum(r for r in reach if r > 0) + size
    start = rng.randrange(low, memory.size - high + 1)
    first = memory[start : start + size].view(f"V{size}")
    return as_strided(first, shape, strides)
