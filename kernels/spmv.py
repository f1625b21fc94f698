"""Product of a sparse matrix in compressed rows (CSR) with a vector, y = A·x."""

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

SPMV = Source("spmv", lanes=32, COLUMN="index", START="index")
INDEX = {np.dtype(np.int32): "int", np.dtype(np.int64): "index"}
"""How the kernels call the types of index that they read."""


@task(flops=lambda values, *_: 2 * values.size, rtol=1e-5)
def spmv(
    values: In[Array], columns: In[Array], starts: In[Array], x: In[Array], y: Out[Array]
) -> None:
    """Write A·x into `y`.

    Row i of A has values[j] in column columns[j] for j from starts[i] to starts[i + 1] - 1; the
    three are `data`, `indices` and `indptr` of SciPy.  Rows are added up in double precision.

    Parameters
    ----------
    values : array of float, (NNZ,)
    columns : array of int, (NNZ,)
    starts : array of int, (M + 1,)
        From 0 to NNZ, never falling.
    x : array of float, (N,)
    y : array of float, (M,)

    Raises
    ------
    ValueError
        If the shapes do not fit.
    IndexError
        If a column is not in `x`.  On a device the row's result is NaN instead.
    """
    _check(values, columns, starts, x, y)
    if columns.size and (columns.min() < 0 or columns.max() >= x.size):
        raise IndexError(f"a column of A is not in x, which has {x.size} elements")
    rows = np.repeat(np.arange(y.size), np.diff(starts))
    products = values.astype(np.float64) * x[columns]
    y[...] = np.bincount(rows, weights=products, minlength=y.size)


def _check(values: Any, columns: Any, starts: Any, x: Any, y: Any) -> None:
    if values.shape != columns.shape or x.ndim != 1 or starts.shape != (y.size + 1,):
        raise ValueError(
            f"values {values.shape}, columns {columns.shape}, starts {starts.shape}, x {x.shape} "
            f"and y {y.shape} do not fit"
        )


def _device(values: Array, columns: Array, starts: Array, x: Array, y: Array) -> bool:
    return one_precision(values, x, y) and columns.dtype in INDEX and starts.dtype in INDEX


@spmv.variant("cpu", when=_device)
def spmv_numba(values: Array, columns: Array, starts: Array, x: Array, y: Array) -> None:
    """Do it in one pass."""
    _check(values, columns, starts, x, y)
    _spmv(values, columns, starts, x, y)


@lazy_njit
def _spmv(values: Array, columns: Array, starts: Array, x: Array, y: Array) -> None:
    for i in range(y.size):
        total = 0.0
        for j in range(starts[i], starts[i + 1]):
            column = columns[j]
            if column < 0 or column >= x.size:
                raise IndexError("a column of A is not in x")
            total += np.float64(values[j]) * x[column]
        y[i] = total


@spmv.variant("cuda", when=_device)
@spmv.variant("opencl", when=_device)
def spmv_device(values: Any, columns: Any, starts: Any, x: Any, y: Any) -> None:
    """Use a group per row."""
    _check(values, columns, starts, x, y)
    program = build(SPMV, y, COLUMN=INDEX[columns.dtype], START=INDEX[starts.dtype])
    lanes = program.lanes
    program.launch("spmv", (y.size * lanes,), (lanes,), x.size, values, columns, starts, x, y)
