"""Layers of networks on a device, forward and backward: the device variants of their kernels.

A convolution is a product of patches with filters.  The patches of a block of images at a time go
through a workspace; the rest is `multiply`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from legato_rt.kernels.device_launch import build
from legato_rt.kernels.device_products import multiply
from legato_rt.kernels.device_source import Source, one_precision

RELU = Source("relu")
SGD = Source("sgd")
MAXPOOL = Source("maxpool", lanes=32)
ROWS = Source("rows", lanes=32)
PATCHES = Source("patches", lanes=32)
CROSS_ENTROPY = Source("softmax_cross_entropy", lanes=64, CLASS="index")

GROUP = 128
SEGMENTS = 64
"""Into so many parts at most are rows cut that are summed up."""
CACHE_BYTES = 2 * 1024 * 1024
WORKSPACE_BYTES = 64 * 1024 * 1024
"""Upper bounds on the patches in work at a time, on processors and on GPUs; an image's at least."""


def relu_device(x: Any, y: Any) -> None:
    """The device variant of `relu`."""
    _same_size(x, y)
    build(RELU, x).launch("relu", (x.size,), (GROUP,), x.size, x, y)


def relu_grad_device(y: Any, dy: Any, dx: Any) -> None:
    """The device variant of `relu_grad`."""
    _same_size(y, dy, dx)
    build(RELU, y).launch("relu_grad", (y.size,), (GROUP,), y.size, y, dy, dx)


def sgd_device(
    weights: Any,
    velocity: Any,
    gradient: Any,
    rate: float,
    momentum: float = 0.9,
    decay: float = 0.0,
) -> None:
    """The device variant of `sgd`."""
    _same_size(weights, velocity, gradient)
    size, numbers = weights.size, (float(rate), float(momentum), float(decay))
    build(SGD, weights).launch(
        "sgd", (size,), (GROUP,), size, *numbers, weights, velocity, gradient
    )


def maxpool_device(x: Any, y: Any, size: int = 2) -> None:
    """The device variant of `maxpool`."""
    _check_pool(x, y, size)
    _by_row(MAXPOOL, "maxpool", math.prod(y.shape[:3]), y, *x.shape[1:], size, x, y)


def maxpool_grad_device(x: Any, dy: Any, dx: Any, size: int = 2) -> None:
    """The device variant of `maxpool_grad`."""
    _check_pool(x, dy, size)
    if dx.shape != x.shape:
        raise ValueError("dx must have the shape of x")
    n, h, w, c = x.shape
    windows = n * -(-h // size) * -(-w // size)
    _by_row(MAXPOOL, "maxpool_grad", windows, dx, h, w, c, size, x, dy, dx)


def dense_device(x: Any, w: Any, b: Any, y: Any) -> None:
    """The device variant of `dense`."""
    _fill_rows(b, y)
    multiply(x, w, y)


def dense_input_grad_device(dy: Any, w: Any, dx: Any) -> None:
    """The device variant of `dense_input_grad`."""
    multiply(dy, w, dx, beta=0.0, transpose_b=True)


def dense_weight_grad_device(x: Any, dy: Any, dw: Any, db: Any) -> None:
    """The device variant of `dense_weight_grad`."""
    _sum_rows(dy, db)
    multiply(x, dy, dw, beta=0.0, transpose_a=True)


def conv2d_device(x: Any, w: Any, b: Any, y: Any, pad: int = 0, stride: int = 1) -> None:
    """The device variant of `conv2d`."""
    _check_conv(x, w, y, pad, stride)
    if y.size == 0:
        return
    outputs, filters = _matrix(y), _matrix(w)
    _fill_rows(b, outputs)
    for images, rows, patches in _blocks(x, w, y):
        _gather(x[images], w, y, pad, stride, patches)
        multiply(patches, filters, outputs[rows])


def conv2d_input_grad_device(dy: Any, w: Any, dx: Any, pad: int = 0, stride: int = 1) -> None:
    """The device variant of `conv2d_input_grad`."""
    _check_conv(dx, w, dy, pad, stride)
    slopes, filters = _matrix(dy), _matrix(w)
    if dx.size == 0:
        return
    for images, rows, patches in _blocks(dx, w, dy):
        multiply(slopes[rows], filters, patches, beta=0.0, transpose_b=True)
        part = dx[images]
        pixels, geometry = math.prod(part.shape[:3]), _geometry(part, w, dy, pad, stride)
        _by_row(PATCHES, "patches_scatter", pixels, part, *geometry, patches, part)


def conv2d_weight_grad_device(
    x: Any, dy: Any, dw: Any, db: Any, pad: int = 0, stride: int = 1
) -> None:
    """The device variant of `conv2d_weight_grad`."""
    _check_conv(x, dw, dy, pad, stride)
    slopes, filters = _matrix(dy), _matrix(dw)
    _sum_rows(slopes, db)
    beta = 0.0
    for images, rows, patches in _blocks(x, dw, dy):
        _gather(x[images], dw, dy, pad, stride, patches)
        multiply(patches, slopes[rows], filters, beta=beta, transpose_a=True)
        beta = 1.0


def softmax_cross_entropy_device(scores: Any, classes: Any, loss: Any) -> None:
    """The device variant of `softmax_cross_entropy`; a class out of range has the loss NaN."""
    rows, columns = _check_scores(scores, classes, loss.shape == classes.shape)
    program = build(CROSS_ENTROPY, scores, CLASS=_class_type(classes))
    program.launch(
        "softmax_cross_entropy", (rows * program.lanes,), (program.lanes,), columns,
        scores, classes, loss,
    )  # fmt: skip


def softmax_cross_entropy_grad_device(
    scores: Any, classes: Any, dscores: Any, scale: float = 1.0
) -> None:
    """The device variant of `softmax_cross_entropy_grad`."""
    rows, columns = _check_scores(scores, classes, dscores.shape == scores.shape)
    program = build(CROSS_ENTROPY, scores, CLASS=_class_type(classes))
    program.launch(
        "softmax_cross_entropy_grad", (rows * program.lanes,), (program.lanes,), columns,
        float(scale), scores, classes, dscores,
    )  # fmt: skip


def with_classes(scores: Any, classes: Any, out: Any, *_: float) -> bool:
    """Whether the device kernels of cross entropy read arrays of these types."""
    whole = np.dtype(np.int32), np.dtype(np.int64)
    return one_precision(scores, out) and getattr(classes, "dtype", None) in whole


def _class_type(classes: Any) -> str:
    return "int" if classes.dtype == np.int32 else "index"


def _same_size(first: Any, *others: Any) -> None:
    if any(other.shape != first.shape for other in others):
        raise ValueError("the arrays must have one shape")


def _check_pool(x: Any, y: Any, size: int) -> None:
    n, h, w, c = x.shape
    if y.shape != (n, h // size, w // size, c):
        raise ValueError("the output's shape is not that of the pooled images")


def _check_conv(x: Any, w: Any, y: Any, pad: int, stride: int) -> None:
    (n, h, width, c), (kh, kw, channels, o) = x.shape, w.shape
    sides = (h + 2 * pad - kh) // stride + 1, (width + 2 * pad - kw) // stride + 1
    if pad < 0 or stride < 1 or channels != c or y.shape != (n, *sides, o):
        raise ValueError(
            f"images {x.shape}, filters {w.shape}, pad {pad} and stride {stride} do not give "
            f"an output of {y.shape}"
        )


def _check_scores(scores: Any, classes: Any, fits: bool) -> tuple[int, int]:
    rows, columns = scores.shape
    if classes.shape != (rows,) or not fits:
        raise ValueError(f"scores {scores.shape}, classes {classes.shape} and the output differ")
    return rows, columns


def _matrix(array: Any) -> Any:
    """Return the array with all dimensions but the last as one."""
    return array.reshape(math.prod(array.shape[:-1]), array.shape[-1])


def _geometry(x: Any, w: Any, y: Any, pad: int, stride: int) -> tuple[int, ...]:
    return (*x.shape[1:], *y.shape[1:3], *w.shape[:2], pad, stride)


def _blocks(x: Any, w: Any, y: Any) -> Iterator[tuple[slice, slice, Any]]:
    """Yield (images, rows of the patches' matrix among all, room for the patches) of each block.

    Where there is no image, yield one empty block, so that sums come out as zero.
    """
    pixels, length = y.shape[1] * y.shape[2], w.shape[0] * w.shape[1] * w.shape[2]
    image_bytes = pixels * length * x.dtype.itemsize
    program = build(PATCHES, x)
    limit = CACHE_BYTES if program.traits.scalar else WORKSPACE_BYTES
    count = max(1, min(len(x), limit // max(1, image_bytes)))
    room = program.scratch((count * pixels, length), x.dtype)
    for start in range(0, max(1, len(x)), count):
        stop = min(len(x), start + count)
        images, rows = slice(start, stop), slice(start * pixels, stop * pixels)
        yield images, rows, room[: (stop - start) * pixels]


def _gather(x: Any, w: Any, y: Any, pad: int, stride: int, patches: Any) -> None:
    geometry = _geometry(x, w, y, pad, stride)
    _by_row(PATCHES, "patches_gather", len(patches), patches, *geometry, x, patches)


def _by_row(source: Source, kernel: str, count: int, out: Any, *args: Any) -> None:
    """Enqueue a kernel whose lanes share a row or a pixel; none if nothing is written."""
    program = build(source, out)
    lanes = program.lanes
    items = lanes, count if out.size else 0
    program.launch(kernel, items, (lanes, max(1, GROUP // lanes)), count, *args)


def _fill_rows(b: Any, y: Any) -> None:
    if b.shape != y.shape[1:]:
        raise ValueError(f"b {b.shape} and rows {y.shape} do not fit")
    _by_row(ROWS, "rows_fill", len(y), y, b.size, b, y)


def _sum_rows(x: Any, out: Any) -> None:
    """Enqueue out ← Σ rows of x."""
    rows, columns = x.shape
    if out.shape != (columns,):
        raise ValueError(f"rows {x.shape} and sums {out.shape} do not fit")
    program = build(ROWS, x)
    length = max(1, -(-rows // SEGMENTS))
    segments = -(-rows // length)
    parts = program.scratch(max(1, segments * columns), np.float64)
    program.launch("rows_sum_parts", (columns, segments), (GROUP, 1), rows, columns, length,
                   x, parts)  # fmt: skip
    program.launch("rows_sum_finish", (columns,), (GROUP,), segments, columns, parts, out)
