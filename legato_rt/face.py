"""Functions of the public face that act on the current runtime, and `tiles`."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import numpy.typing as npt

from legato_rt.context import current_runtime
from legato_rt.errors import UsageError


def wait(*items: Any, timeout: float | None = None) -> None:
    """Wait until data and futures are the program's again; see `Runtime.wait`.

    Without an open runtime there is nothing to wait for.
    """
    runtime = current_runtime()
    if runtime is not None:
        runtime.wait(*items, timeout=timeout)


def host(item: Any, mode: str = "in") -> contextlib.AbstractContextManager[Any]:
    """Lend data back to the program for the length of a ``with`` block; see `Runtime.host`."""
    runtime = current_runtime()
    return contextlib.nullcontext(item) if runtime is None else runtime.host(item, mode)


def tiles(array: npt.NDArray[Any], *shape: int) -> npt.NDArray[np.object_]:
    """Cut an array into tiles: plain views, in an array that is indexed by tile.

    Parameters
    ----------
    array : ndarray
        With at least one axis.
    *shape : int
        Size of a tile along each axis; one number for all axes. The last tile of an axis is
        smaller where the size does not divide it.

    Returns
    -------
    ndarray of object
        One view for each tile, with as many axes as ``array``.

    Raises
    ------
    UsageError
        If the sizes do not fit the array.
    """
    if getattr(array, "ndim", 0) == 0:
        raise UsageError(f"tiles cuts an array with at least one axis, not {array!r}")
    sizes = shape * array.ndim if len(shape) == 1 else shape
    if len(sizes) != array.ndim or not all(n > 0 for n in sizes):
        raise UsageError(f"tiles of sizes {shape} do not fit an array of shape {array.shape}")
    counts = [-(-length // size) for length, size in zip(array.shape, sizes, strict=True)]
    cut = np.empty(counts, dtype=object)
    for index in np.ndindex(*counts):
        cut[index] = array[
            tuple(slice(i * size, (i + 1) * size) for i, size in zip(index, sizes, strict=True))
        ]
    return cut
