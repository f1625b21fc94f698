"""What the tests of the device kernels share: arrays on a device, spoiled inputs, comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from legato_rt.kernels.samples import Sample

Array = npt.NDArray[Any]

GUARD = 3
"""Elements that are kept before and behind an array on a device, to see that they stay."""

PRIMES = 7, 13, 5, 11
IN = 1


def variant(task: Any, kind: str) -> Callable[..., None]:
    """Return the implementation that is preferred on devices of a kind."""
    found: Callable[..., None] = [v.function for v in task.variants if v.kind == kind][-1]
    return found


class Guarded:
    """Copies of arguments on an OpenCL device, each in the middle of a larger piece of memory."""

    def __init__(self, queue: Any, args: Sequence[Any]) -> None:
        self._queue = queue
        self._wholes: list[Any] = []
        self.args = [self._put(arg) if isinstance(arg, np.ndarray) else arg for arg in args]

    def _put(self, array: Array) -> Any:
        import pyopencl.array as cl_array

        whole = np.zeros(array.size + 2 * GUARD, array.dtype)
        whole[GUARD : GUARD + array.size] = array.reshape(-1)
        self._wholes.append(cl_array.to_device(self._queue, whole))
        if array.size == 0:
            return cl_array.empty(self._queue, array.shape, array.dtype)
        return self._wholes[-1][GUARD : GUARD + array.size].reshape(array.shape)

    def get(self) -> list[Any]:
        """Return the arguments on the host, after a look at what is around them."""
        for whole in self._wholes:
            host = whole.get()
            assert not host[:GUARD].any(), "written before the array"
            assert not host[len(host) - GUARD :].any(), "written behind the array"
        return [arg.get() if hasattr(arg, "get") else arg for arg in self.args]


def spoil(sample: Sample, args: Sequence[Any], seed: int) -> None:
    """Put a NaN and both infinities somewhere into each array of floats that the task reads."""
    rng = np.random.default_rng(seed)
    for mode, arg in zip(sample.task.signature.modes, args, strict=False):
        if mode & IN and isinstance(arg, np.ndarray) and arg.dtype.kind == "f" and arg.size:
            for value in (np.nan, np.inf, -np.inf):
                arg.reshape(-1)[rng.integers(arg.size)] = value


def edges(sample: Sample) -> list[tuple[int, ...]]:
    """Return unusual sizes: one element, none, none in one dimension only, primes."""
    count = len(sample.sizes)
    without = [tuple(0 if i == j else 5 for j in range(count)) for i in range(count)]
    return [(1,) * count, (0,) * count, *without, PRIMES[:count], sample.sizes]


def expect(task: Any, args: Sequence[Any]) -> None:
    """Run the reference in place; infinities in it need no warning."""
    with np.errstate(all="ignore"):
        task.function(*args)


def assert_same(got: Sequence[Any], want: Sequence[Any]) -> None:
    """Compare all arrays of two lists of arguments, floats relative to the largest."""
    for one, other in zip(got, want, strict=True):
        if not isinstance(other, np.ndarray):
            continue
        assert one.dtype == other.dtype
        if other.dtype.kind != "f":
            np.testing.assert_array_equal(one, other)
            continue
        finite = other[np.isfinite(other)]
        scale = float(np.abs(finite).max(initial=1.0))
        rtol = 1e-5 if other.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(one, other, rtol=0, atol=scale * rtol)
