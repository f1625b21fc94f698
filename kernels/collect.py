"""Collects a batch of images, each cut out of a larger one at its own corner, and their classes.

The images with a margin around them, and corners drawn at random, make training data that moves.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from legato_rt.access import In, Out
from legato_rt.kernels.device_launch import build
from legato_rt.kernels.device_source import Source, one_precision
from legato_rt.kernels.jit import lazy_njit
from legato_rt.task import task

Array: TypeAlias = npt.NDArray[Any]

COLLECT = Source("collect", lanes=32, WHOLE="index")
GROUP = 128
WHOLE = {np.dtype(np.int32): "int", np.dtype(np.int64): "index"}
"""How the kernels call the types of integer that they read."""


@task(flops=lambda *_: 0, rtol=0.0)
def collect(
    x: In[Array], classes: In[Array], picks: In[Array], corners: In[Array], y: Out[Array],
    labels: Out[Array],
) -> None:  # fmt: skip
    """Write windows of the picked images into `y`, and the images' classes into `labels`.

    Parameters
    ----------
    x : array of float, (N, H, W, C)
    classes : array of int, (N,)
    picks : array of int, (B,)
        Which images.
    corners : array of int, (B, 2)
        Row and column of `x` that the first pixel of each window is taken from.
    y : array of float, (B, h, w, C)
    labels : array of int, (B,)

    Raises
    ------
    ValueError
        If the shapes do not fit.
    IndexError
        If a pick or a window is not in `x`.  On a device the image is NaN and its label -1 instead.
    """
    _check(x, classes, picks, corners, y, labels)
    height, width = y.shape[1:3]
    rooms = x.shape[1] - height, x.shape[2] - width
    if picks.size and (min(picks.min(), corners.min()) < 0 or (corners > rooms).any()):
        raise IndexError("a pick or a window is not in the images")
    rows = corners[:, 0, None, None] + np.arange(height)[:, None]
    columns = corners[:, 1, None, None] + np.arange(width)
    y[...] = x[picks[:, None, None], rows, columns]
    labels[...] = classes[picks]


def _check(x: Any, classes: Any, picks: Any, corners: Any, y: Any, labels: Any) -> None:
    count = len(y)
    fits = x.ndim == y.ndim == 4 and x.shape[3] == y.shape[3] and classes.shape == x.shape[:1]
    if (
        not fits
        or picks.shape != (count,)
        or corners.shape != (count, 2)
        or labels.shape != (count,)
    ):
        raise ValueError(
            f"images {x.shape}, classes {classes.shape}, picks {picks.shape}, corners "
            f"{corners.shape}, windows {y.shape} and labels {labels.shape} do not fit"
        )


def _usual(x: Array, classes: Array, picks: Array, corners: Array, y: Array, labels: Array) -> bool:
    whole = getattr(classes, "dtype", None)
    others = (getattr(array, "dtype", None) for array in (picks, corners, labels))
    return one_precision(x, y) and whole in WHOLE and all(dtype == whole for dtype in others)


@collect.variant("cpu", when=_usual)
def collect_numba(
    x: Array, classes: Array, picks: Array, corners: Array, y: Array, labels: Array
) -> None:
    """Copy line by line."""
    _check(x, classes, picks, corners, y, labels)
    _collect(x, classes, picks, corners, y, labels)


@lazy_njit
def _collect(
    x: Array, classes: Array, picks: Array, corners: Array, y: Array, labels: Array
) -> None:
    count, height, width, _ = y.shape
    for n in range(count):
        pick, top, left = picks[n], corners[n, 0], corners[n, 1]
        inside = 0 <= top <= x.shape[1] - height and 0 <= left <= x.shape[2] - width
        if not inside or not 0 <= pick < x.shape[0]:
            raise IndexError("a pick or a window is not in the images")
        y[n] = x[pick, top : top + height, left : left + width]
        labels[n] = classes[pick]


@collect.variant("cuda", when=_usual)
@collect.variant("opencl", when=_usual)
def collect_device(x: Any, classes: Any, picks: Any, corners: Any, y: Any, labels: Any) -> None:
    """Let the lanes of a group share a row of an image."""
    _check(x, classes, picks, corners, y, labels)
    program = build(COLLECT, y, WHOLE=WHOLE[classes.dtype])
    lanes, rows = program.lanes, y.shape[0] * y.shape[1]
    program.launch(
        "collect", (lanes, rows), (lanes, max(1, GROUP // lanes)), rows, *x.shape[:3],
        *y.shape[1:], x, classes, picks, corners, y, labels,
    )  # fmt: skip
