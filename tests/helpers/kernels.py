"""What the tests of the kernels share: inputs, stale outputs, comparison, differences."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def arrays(seed: int, dtype: Any, *shapes: tuple[int, ...]) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def stale(*likes: Array) -> list[Array]:
    """Return arrays of these shapes that hold NaN, as an output may before it is written."""
    return [np.full_like(like, np.nan) for like in likes]


def variants(task: Any, *args: Any, **kwargs: Any) -> list[Callable[..., None]]:
    """Return the CPU implementations beside the reference that accept these arguments."""
    found = [
        variant.function
        for variant in task.variants[1:]
        if variant.kind == "cpu" and (variant.when is None or variant.when(*args, **kwargs))
    ]
    assert found, f"no variant of {task} takes these arguments"
    return found


def assert_close(got: Array, expected: Array) -> None:
    """Compare relative to the largest element: sums of many terms cancel."""
    assert got.dtype == expected.dtype
    scale = float(np.abs(expected).max(initial=1.0))
    rtol = 1e-5 if got.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(got, expected, rtol=0, atol=scale * rtol)


def differences(f: Callable[[], float], x: Array, step: float = 1e-6) -> Array:
    """Return the gradient of f with respect to x by central differences."""
    slope = np.empty_like(x)
    for i in np.ndindex(x.shape):
        kept = x[i]
        x[i] = kept + step
        above = f()
        x[i] = kept - step
        slope[i] = (above - f()) / (2 * step)
        x[i] = kept
    return slope
