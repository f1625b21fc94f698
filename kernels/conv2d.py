"""Convolution of images with a bank of filters, and its gradients.

Layouts are channels last: images (N, H, W, C), filters (KH, KW, C, O). As usual for networks,
"convolution" is cross-correlation: y[n, p, q] = Σ x[n, p·stride + u - pad, q·stride + v - pad]
· w[u, v] + b, with zeros outside the image.

The CPU variants lower the convolution to matrix products (im2col): each output pixel's patch
becomes a row of a matrix. With channels last a row is KH runs that lie contiguous in memory. A
block of images at a time goes through a workspace that stays in the L2 cache. Each patch ends
with a constant 1, whose weight is the bias; so one product also adds b, or sums its gradient.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from legato_rt.access import In, Out
from legato_rt.kernels.device_network import (
    conv2d_device,
    conv2d_input_grad_device,
    conv2d_weight_grad_device,
)
from legato_rt.kernels.device_source import leading
from legato_rt.kernels.jit import lazy_njit
from legato_rt.task import task

Array: TypeAlias = npt.NDArray[Any]

BLOCK_BYTES = 1280 * 1024
"""Upper bound on the patches in work at a time: what an L2 cache holds beside the operands."""


def output_side(side: int, kernel: int, pad: int = 0, stride: int = 1) -> int:
    """Return height or width of the output for that of the image and the filter, in pixels."""
    return (side + 2 * pad - kernel) // stride + 1


def _check(x: Array, w: Array, y: Array, pad: int, stride: int) -> None:
    """Refuse shapes that do not fit: the compiled loops below trust them."""
    n, h, width, c = x.shape
    kh, kw, channels, o = w.shape
    sides = output_side(h, kh, pad, stride), output_side(width, kw, pad, stride)
    if pad < 0 or stride < 1 or channels != c or y.shape != (n, *sides, o):
        raise ValueError(
            f"images {x.shape}, filters {w.shape}, pad {pad} and stride {stride} do not give "
            f"an output of {y.shape}"
        )


def _padded(x: Array, pad: int) -> Array:
    return np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))


def _taps(x: Array, w: Array, y: Array, stride: int) -> Iterator[tuple[int, int, Array]]:
    """Yield (u, v, the pixels of the padded `x` that filter element u, v meets)."""
    oh, ow = y.shape[1:3]
    for u, v in np.ndindex(*w.shape[:2]):
        rows = slice(u, u + stride * (oh - 1) + 1, stride)
        columns = slice(v, v + stride * (ow - 1) + 1, stride)
        yield u, v, x[:, rows, columns]


@task(flops=lambda x, w, b, y, pad=0, stride=1: 2 * y[..., 0].size * w.size, rtol=1e-5)
def conv2d(
    x: In[Array], w: In[Array], b: In[Array], y: Out[Array], pad: int = 0, stride: int = 1
) -> None:
    """Write the convolution of `x` with `w`, plus `b`, into `y`.

    Parameters
    ----------
    x : array of float, (N, H, W, C)
    w : array of float, (KH, KW, C, O)
    b : array of float, (O,)
    y : array of float, (N, OH, OW, O)
        OH and OW as `output_side` gives them.
    pad : int
        Rows and columns of zeros put around each image.
    stride : int
        Step from one output pixel to the next, in input pixels.
    """
    _check(x, w, y, pad, stride)
    y[...] = b
    for u, v, pixels in _taps(_padded(x, pad), w, y, stride):
        y += pixels @ w[u, v]


@task(flops=lambda dy, w, dx, pad=0, stride=1: 2 * dy[..., 0].size * w.size, rtol=1e-5)
def conv2d_input_grad(
    dy: In[Array], w: In[Array], dx: Out[Array], pad: int = 0, stride: int = 1
) -> None:
    """Write the gradient with respect to x into `dx`.

    Parameters
    ----------
    dy : array of float, (N, OH, OW, O)
    w : array of float, (KH, KW, C, O)
    dx : array of float, (N, H, W, C)
    pad, stride : int
        As for `conv2d`.
    """
    _check(dx, w, dy, pad, stride)
    wide = _padded(np.zeros_like(dx), pad)
    for u, v, pixels in _taps(wide, w, dy, stride):
        pixels += dy @ w[u, v].T
    h, width = dx.shape[1:3]
    dx[...] = wide[:, pad : pad + h, pad : pad + width]


@task(flops=lambda x, dy, dw, db, pad=0, stride=1: 2 * dy[..., 0].size * dw.size, rtol=1e-5)
def conv2d_weight_grad(
    x: In[Array], dy: In[Array], dw: Out[Array], db: Out[Array], pad: int = 0, stride: int = 1
) -> None:
    """Write the gradients with respect to w into `dw` and to b into `db`.

    Parameters
    ----------
    x : array of float, (N, H, W, C)
    dy : array of float, (N, OH, OW, O)
    dw : array of float, (KH, KW, C, O)
    db : array of float, (O,)
    pad, stride : int
        As for `conv2d`.
    """
    _check(x, dw, dy, pad, stride)
    for u, v, pixels in _taps(_padded(x, pad), dw, dy, stride):
        dw[u, v] = np.tensordot(pixels, dy, axes=((0, 1, 2), (0, 1, 2)))
    db[...] = dy.sum(axis=(0, 1, 2))


def _plain(*arrays: Array) -> bool:
    """Whether BLAS can work on these in place."""
    dtype = arrays[0].dtype
    return dtype in (np.float32, np.float64) and all(
        a.flags.c_contiguous and a.dtype == dtype for a in arrays
    )


@conv2d.variant("cpu", when=lambda x, w, b, y, pad=0, stride=1: _plain(x, w, b, y))
def conv2d_lowered(x: Array, w: Array, b: Array, y: Array, pad: int = 0, stride: int = 1) -> None:
    """Multiply patches with filters, a block of images at a time."""
    _check(x, w, y, pad, stride)
    o = w.shape[3]
    filters = np.concatenate((w.reshape(-1, o), b[None]))
    for start, stop, rows in _patches(x, w, y, pad, stride):
        np.dot(rows, filters, out=y[start:stop].reshape(len(rows), o))


@conv2d_input_grad.variant("cpu", when=lambda dy, w, dx, pad=0, stride=1: _plain(dy, w, dx))
def conv2d_input_grad_lowered(
    dy: Array, w: Array, dx: Array, pad: int = 0, stride: int = 1
) -> None:
    """Multiply `dy` with filters and add the patches that result where they came from."""
    _check(dx, w, dy, pad, stride)
    kh, kw, c, o = w.shape
    n, h, width, _ = dx.shape
    oh, ow = dy.shape[1:3]
    filters = w.reshape(-1, o).T
    count = _images_in_block(n, oh * ow * w[..., 0].nbytes)
    columns = _buffers.take("scattered", (count * oh * ow, kh * kw * c), w.dtype)
    wide = _buffers.take("sums", (count, h + 2 * pad, width + 2 * pad, c), w.dtype)
    for start in range(0, n, count):
        stop = min(n, start + count)
        rows, sums = columns[: (stop - start) * oh * ow], wide[: stop - start]
        np.dot(dy[start:stop].reshape(len(rows), o), filters, out=rows)
        _col2im(rows, sums, dx[start:stop], (kh, kw), (oh, ow), pad, stride)


@conv2d_weight_grad.variant(
    "cpu", when=lambda x, dy, dw, db, pad=0, stride=1: _plain(x, dy, dw, db)
)
def conv2d_weight_grad_lowered(
    x: Array, dy: Array, dw: Array, db: Array, pad: int = 0, stride: int = 1
) -> None:
    """Multiply transposed patches with `dy`; the blocks' sums are added in order."""
    _check(x, dw, dy, pad, stride)
    o = dy.shape[3]
    total = np.zeros((dw[..., 0].size + 1, o), dw.dtype)
    part = np.empty_like(total)
    for start, stop, rows in _patches(x, dw, dy, pad, stride):
        np.dot(rows.T, dy[start:stop].reshape(len(rows), o), out=part)
        np.add(total, part, out=total)
    dw[...] = total[:-1].reshape(dw.shape)
    db[...] = total[-1]


def _patches(
    x: Array, w: Array, y: Array, pad: int, stride: int
) -> Iterator[tuple[int, int, Array]]:
    """Yield (start, stop, the patches of those images, one a row, each followed by a 1)."""
    (n, h, width, c), (kh, kw), (oh, ow) = x.shape, w.shape[:2], y.shape[1:3]
    length = kh * kw * c + 1
    count = _images_in_block(n, oh * ow * length * x.itemsize)
    wide = _buffers.take(("padded", pad), (count, h + 2 * pad, width + 2 * pad, c), x.dtype)
    columns = _buffers.take("patches", (count * oh * ow, length), x.dtype, fill=1)
    for start in range(0, n, count):
        stop = min(n, start + count)
        images, rows = wide[: stop - start], columns[: (stop - start) * oh * ow]
        _im2col(x[start:stop], images, rows, (kh, kw), (oh, ow), pad, stride)
        yield start, stop, rows


def _images_in_block(n: int, image_bytes: int) -> int:
    return max(1, min(n, BLOCK_BYTES // max(1, image_bytes)))


class _Buffers(threading.local):
    """Workspace of this thread, kept from call to call."""

    LIMIT = 64

    def __init__(self) -> None:
        self._kept: dict[Any, Array] = {}

    def take(self, use: Any, shape: tuple[int, ...], dtype: Any, fill: float = 0) -> Array:
        """Return the array kept for this use: `fill` at first, then as its users left it."""
        key = use, shape, dtype
        found = self._kept.get(key)
        if found is None:
            if len(self._kept) >= self.LIMIT:
                del self._kept[next(iter(self._kept))]
            found = self._kept[key] = np.full(shape, fill, dtype)
        return found


_buffers = _Buffers()


# The innermost loops of both run over slices: Numba proves their indices in range, and so
# vectorises them, where it does not for `line[left + m]` (2 to 5 times slower).


@lazy_njit
def _im2col(
    x: Array,
    images: Array,
    rows: Array,
    kernel: tuple[int, int],
    output: tuple[int, int],
    pad: int,
    stride: int,
) -> None:
    (kh, kw), (oh, ow) = kernel, output
    n, h, width, c = images.shape
    images[:, pad : h - pad, pad : width - pad] = x
    lines = images.reshape(n * h, width * c)
    run = kw * c
    for i in range(n):
        for p in range(oh):
            for q in range(ow):
                row = rows[(i * oh + p) * ow + q]
                left = q * stride * c
                for u in range(kh):
                    source = lines[i * h + p * stride + u, left : left + run]
                    target = row[u * run : u * run + run]
                    for m in range(run):
                        target[m] = source[m]


@lazy_njit
def _col2im(
    rows: Array,
    sums: Array,
    dx: Array,
    kernel: tuple[int, int],
    output: tuple[int, int],
    pad: int,
    stride: int,
) -> None:
    (kh, kw), (oh, ow) = kernel, output
    n, h, width, c = sums.shape
    sums[:] = 0
    lines = sums.reshape(n * h, width * c)
    run = kw * c
    for i in range(n):
        for p in range(oh):
            for q in range(ow):
                row = rows[(i * oh + p) * ow + q]
                left = q * stride * c
                for u in range(kh):
                    source = row[u * run : u * run + run]
                    target = lines[i * h + p * stride + u, left : left + run]
                    for m in range(run):
                        target[m] += source[m]
    dx[:] = sums[:, pad : h - pad, pad : width - pad]


for _kind in ("opencl", "cuda"):
    conv2d.variant(_kind, when=leading(4))(conv2d_device)
    conv2d_input_grad.variant(_kind, when=leading(3))(conv2d_input_grad_device)
    conv2d_weight_grad.variant(_kind, when=leading(4))(conv2d_weight_grad_device)
