"""Arguments to try the kernels with, of any size and precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from legato_rt.kernels.axpy import axpy
from legato_rt.kernels.collect import collect
from legato_rt.kernels.conv2d import conv2d, conv2d_input_grad, conv2d_weight_grad, output_side
from legato_rt.kernels.dense import dense, dense_input_grad, dense_weight_grad
from legato_rt.kernels.gemm import gemm
from legato_rt.kernels.histogram import histogram
from legato_rt.kernels.kmeans_assign import kmeans_assign
from legato_rt.kernels.layernorm import layernorm
from legato_rt.kernels.maxpool import maxpool, maxpool_grad
from legato_rt.kernels.potrf import potrf
from legato_rt.kernels.reduce import reduce
from legato_rt.kernels.relu import relu, relu_grad
from legato_rt.kernels.scan import scan
from legato_rt.kernels.sgd import sgd
from legato_rt.kernels.softmax import softmax
from legato_rt.kernels.softmax_cross_entropy import (
    softmax_cross_entropy,
    softmax_cross_entropy_grad,
)
from legato_rt.kernels.spmv import spmv
from legato_rt.kernels.stencil2d import stencil2d
from legato_rt.kernels.syrk import syrk
from legato_rt.kernels.transpose import transpose
from legato_rt.kernels.trsm import trsm
from legato_rt.task import Task

Array: TypeAlias = npt.NDArray[Any]


class Draw:
    """Random arrays of one precision.

    Parameters
    ----------
    seed : int
    dtype : dtype
        float32 or float64.
    """

    def __init__(self, seed: int, dtype: npt.DTypeLike) -> None:
        self.rng = np.random.default_rng(seed)
        self.dtype = np.dtype(dtype)

    def normal(self, *shape: int) -> Array:
        """Elements of mean 0 and variance 1."""
        return self.rng.standard_normal(shape).astype(self.dtype)

    def empty(self, *shape: int) -> Array:
        """An output: NaN, so that an element that is not written shows."""
        return np.full(shape, np.nan, self.dtype)

    def whole(self, below: int, *shape: int) -> Array:
        """Integers from 0 to `below` - 1."""
        return self.rng.integers(0, max(1, below), shape)

    def lower(self, n: int) -> Array:
        """A well conditioned lower triangle, with something else above its diagonal."""
        made: Array = self.normal(n, n) / (2 * max(1, n)) + np.eye(n, dtype=self.dtype)
        return made


@dataclass(frozen=True)
class Sample:
    """How to make arguments for a task.

    Attributes
    ----------
    task : Task
    sizes : tuple of int
        Usual values of the sizes that `make` takes.
    make : callable
        Takes a `Draw` and the sizes, which may be any from 0; returns the task's arguments.
    """

    task: Task[..., Any]
    sizes: tuple[int, ...]
    make: Callable[..., tuple[Any, ...]]

    def arguments(
        self, dtype: npt.DTypeLike = np.float32, seed: int = 0, sizes: tuple[int, ...] = ()
    ) -> tuple[Any, ...]:
        """Return new arguments, of the usual sizes unless others are given."""
        return self.make(Draw(seed, dtype), *(sizes or self.sizes))


def _conv(d: Draw, n: int, side: int, c: int, o: int) -> tuple[Array, Array, Array, Array]:
    side, c, o = side + 3, max(1, c), max(1, o)
    out = output_side(side, 3, 1, 2), output_side(side + 1, 2, 1, 2)
    return (
        d.normal(n, side, side + 1, c),
        d.normal(3, 2, c, o),
        d.normal(o),
        d.normal(n, *out, o),
    )


def _conv2d(d: Draw, *sizes: int) -> tuple[Any, ...]:
    x, w, b, y = _conv(d, *sizes)
    return x, w, b, d.empty(*y.shape), 1, 2


def _conv2d_input_grad(d: Draw, *sizes: int) -> tuple[Any, ...]:
    x, w, _, dy = _conv(d, *sizes)
    return dy, w, d.empty(*x.shape), 1, 2


def _conv2d_weight_grad(d: Draw, *sizes: int) -> tuple[Any, ...]:
    x, w, b, dy = _conv(d, *sizes)
    return x, dy, d.empty(*w.shape), d.empty(*b.shape), 1, 2


def _maxpool(d: Draw, n: int, h: int, w: int, c: int) -> tuple[Array, Array]:
    # Few distinct values, so that windows have several largest.
    return d.whole(4, n, h, w, c).astype(d.dtype), d.normal(n, h // 2, w // 2, c)


def _maxpool_forward(d: Draw, *sizes: int) -> tuple[Any, ...]:
    x, y = _maxpool(d, *sizes)
    return x, d.empty(*y.shape)


def _maxpool_backward(d: Draw, *sizes: int) -> tuple[Any, ...]:
    x, dy = _maxpool(d, *sizes)
    return x, dy, d.empty(*x.shape)


def _collect(d: Draw, n: int, b: int, side: int, c: int) -> tuple[Any, ...]:
    n, side = n + 1, side + 1
    picks, corners = d.whole(n, b), d.whole(3, b, 2)
    x, y = d.normal(n, side + 2, side + 3, c), d.empty(b, side, side + 1, c)
    return x, d.whole(10, n), picks, corners, y, d.whole(10, b)


def _histogram(d: Draw, n: int, bins: int) -> tuple[Any, ...]:
    return d.normal(n), np.full(max(1, bins), -1, np.int64), -1.5, 2.0


def _spmv(d: Draw, m: int, n: int) -> tuple[Any, ...]:
    lengths = d.whole(2 * min(8, n), m) * (d.rng.random(m) < 0.8)
    starts = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    count = int(starts[-1])
    columns = d.whole(n, count).astype(np.int32)
    return d.normal(count), columns, starts, d.normal(n), d.empty(m)


def _kmeans_assign(d: Draw, n: int, k: int, dimensions: int) -> tuple[Any, ...]:
    # Small whole numbers: distances are exact, so that the nearest centre is, too.
    points = d.whole(100, n, dimensions).astype(d.dtype)
    centres = d.whole(100, max(1, k), dimensions).astype(d.dtype)
    return points, centres, np.full(n, -1, np.int32), d.empty(n)


def _layernorm(d: Draw, n: int, k: int) -> tuple[Any, ...]:
    return d.normal(n, k), d.normal(k), d.normal(k), d.empty(n, k)


def _positive(d: Draw, n: int) -> tuple[Any, ...]:
    factor = d.lower(n)
    return (np.tril(factor) @ np.tril(factor).T,)


def _scores(d: Draw, n: int, k: int) -> tuple[Array, Array]:
    return 10 * d.normal(n, max(1, k)), d.whole(k, n)


def _cross_entropy(d: Draw, n: int, k: int) -> tuple[Any, ...]:
    return *_scores(d, n, k), d.empty(n)


def _cross_entropy_grad(d: Draw, n: int, k: int) -> tuple[Any, ...]:
    scores, classes = _scores(d, n, k)
    return scores, classes, d.empty(*scores.shape), 0.5


SAMPLES: tuple[Sample, ...] = (
    Sample(axpy, (1000,), lambda d, n: (-0.5, d.normal(n), d.normal(n))),
    Sample(stencil2d, (60, 70), lambda d, h, w: (d.normal(h, w), d.empty(h, w), 0.2, 0.2)),
    Sample(reduce, (10000,), lambda d, n: (d.normal(n), d.empty(1))),
    Sample(scan, (10000,), lambda d, n: (d.normal(n), d.empty(n))),
    Sample(softmax, (40, 100), lambda d, n, k: (d.normal(n, k), d.empty(n, k))),
    Sample(layernorm, (40, 100), _layernorm),
    Sample(transpose, (60, 70), lambda d, m, n: (d.normal(m, n), d.empty(n, m))),
    Sample(histogram, (10000, 50), _histogram),
    Sample(spmv, (300, 200), _spmv),
    Sample(kmeans_assign, (500, 20, 8), _kmeans_assign),
    Sample(gemm, (70, 60, 50), lambda d, m, k, n: (d.normal(m, k), d.normal(k, n), d.normal(m, n))),
    Sample(syrk, (70, 60), lambda d, n, k: (d.normal(n, k), d.normal(n, n), -1.0)),
    Sample(trsm, (70, 50), lambda d, n, m: (d.lower(n), d.normal(m, n))),
    Sample(potrf, (70,), _positive),
    Sample(conv2d, (5, 9, 3, 8), _conv2d),
    Sample(conv2d_input_grad, (5, 9, 3, 8), _conv2d_input_grad),
    Sample(conv2d_weight_grad, (5, 9, 3, 8), _conv2d_weight_grad),
    Sample(collect, (9, 7, 8, 2), _collect),
    Sample(relu, (1000,), lambda d, n: (d.normal(n), d.empty(n))),
    Sample(relu_grad, (1000,), lambda d, n: (d.normal(n), d.normal(n), d.empty(n))),
    Sample(maxpool, (4, 9, 8, 5), _maxpool_forward),
    Sample(maxpool_grad, (4, 9, 8, 5), _maxpool_backward),
    Sample(
        dense,
        (30, 40, 10),
        lambda d, n, k, o: (d.normal(n, k), d.normal(k, o), d.normal(o), d.empty(n, o)),
    ),
    Sample(
        dense_input_grad,
        (30, 40, 10),
        lambda d, n, k, o: (d.normal(n, o), d.normal(k, o), d.empty(n, k)),
    ),
    Sample(
        dense_weight_grad,
        (30, 40, 10),
        lambda d, n, k, o: (d.normal(n, k), d.normal(n, o), d.empty(k, o), d.empty(o)),
    ),
    Sample(softmax_cross_entropy, (50, 10), _cross_entropy),
    Sample(softmax_cross_entropy_grad, (50, 10), _cross_entropy_grad),
    Sample(sgd, (1000,), lambda d, n: (d.normal(n), d.normal(n), d.normal(n), 0.1, 0.9, 0.01)),
)
"""A sample for each task of this package."""
