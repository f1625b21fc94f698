"""The operations that came with the device kernels, on the CPU: against formulas and each other."""

from typing import Any

import numpy as np
import pytest
import scipy.ndimage
import scipy.sparse
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st

from legato_rt.kernels.axpy import axpy
from legato_rt.kernels.histogram import histogram
from legato_rt.kernels.kmeans_assign import kmeans_assign
from legato_rt.kernels.layernorm import layernorm
from legato_rt.kernels.reduce import reduce
from legato_rt.kernels.samples import SAMPLES, Draw, Sample
from legato_rt.kernels.scan import scan
from legato_rt.kernels.softmax import softmax
from legato_rt.kernels.spmv import spmv
from legato_rt.kernels.stencil2d import stencil2d
from legato_rt.kernels.transpose import transpose
from tests.helpers.device_kernels import assert_same, edges, expect, spoil

# Those that NumPy is not the fastest for.
NEW = axpy, histogram, kmeans_assign, layernorm, reduce, scan, spmv, stencil2d, transpose
OURS = [sample for sample in SAMPLES if sample.task in NEW]
DTYPES = [np.float32, np.float64]
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])
every_sample = pytest.mark.parametrize("sample", OURS, ids=[s.task.name for s in OURS])


def others(sample: Sample) -> list[Any]:
    """Return the CPU variants beside the reference."""
    found = [v for v in sample.task.variants[1:] if v.kind == "cpu"]
    assert found
    return found


def check(sample: Sample, dtype: Any, seed: int, sizes: Any, spoiled: bool = False) -> None:
    for variant in others(sample):
        args, want = (sample.arguments(dtype, seed, sizes) for _ in range(2))
        if spoiled:
            spoil(sample, args, seed)
            spoil(sample, want, seed)
        assert variant.when is None or variant.when(*args)
        expect(sample.task, want)
        with np.errstate(all="ignore"):
            variant.function(*args)
        assert_same(args, want)


@every_dtype
@every_sample
def test_variants_agree_on_edges(sample: Sample, dtype: Any) -> None:
    for sizes in edges(sample):
        check(sample, dtype, 1, sizes)


@every_sample
def test_variants_agree_on_any_shape(sample: Sample) -> None:
    largest = {1: 300, 2: 70, 3: 30}[len(sample.sizes)]
    shapes = st.tuples(*(st.integers(0, largest) for _ in sample.sizes))

    @settings(max_examples=15)
    @given(sizes=shapes, dtype=st.sampled_from(DTYPES), spoiled=st.booleans())
    def run(sizes: tuple[int, ...], dtype: Any, spoiled: bool) -> None:
        check(sample, dtype, 2, sizes, spoiled)

    run()


@every_sample
def test_what_a_variant_cannot_take(sample: Sample) -> None:
    """Other precisions, and arrays that are not dense where that matters, are the reference's."""
    args = sample.arguments(np.float16)
    assert not any(v.when(*args) for v in others(sample))
    expect(sample.task, args)


@every_sample
def test_inputs_may_be_read_only(sample: Sample) -> None:
    for body in (sample.task.function, *(v.function for v in others(sample))):
        args = sample.arguments(np.float32)
        for mode, arg in zip(sample.task.signature.modes, args, strict=False):
            if mode == 1 and isinstance(arg, np.ndarray):
                arg.setflags(write=False)
        body(*args)


def test_axpy() -> None:
    y = np.array([1.0, 2.0])
    axpy(-2.0, np.array([3.0, 0.5]), y)
    np.testing.assert_array_equal(y, [-5, 1])


@pytest.mark.parametrize("shape", [(1, 5), (2, 2), (3, 3), (9, 14)])
def test_stencil2d(shape: tuple[int, int]) -> None:
    u, v = Draw(3, np.float64).normal(*shape), np.empty(shape)
    stencil2d(u, v, 0.5, 0.125)
    kernel = np.array([[0, 0.125, 0], [0.125, 0.5, 0.125], [0, 0.125, 0]])
    expected = scipy.ndimage.convolve(u, kernel)
    expected[[0, -1]], expected[:, [0, -1]] = u[[0, -1]], u[:, [0, -1]]
    np.testing.assert_allclose(v, expected, rtol=1e-12)


def test_sums_are_exact_where_a_float_is_not() -> None:
    """1e8 and 1 added up in float32 would be 1e8."""
    x, out, y = np.array([1e8, 1, -1e8], np.float32), np.zeros(1, np.float32), np.zeros(3, "f4")
    bodies = [v.function for v in reduce.variants if v.kind == "cpu"]
    for body in bodies:
        body(x, out)
        assert out[0] == 1
    for body in [v.function for v in scan.variants if v.kind == "cpu"]:
        body(x, y)
        np.testing.assert_array_equal(y, np.array([1e8, 1e8, 1], np.float32))


@pytest.mark.parametrize(("operation", "expected"), [("sum", 6.0), ("min", -1.0), ("max", 4.0)])
def test_reduce(operation: str, expected: float) -> None:
    out = np.zeros(1)
    reduce(np.array([[-1.0, 4.0], [3.0, 0.0]]), out, operation)
    assert out[0] == expected


def test_reduce_of_nothing() -> None:
    out = np.ones(1)
    reduce(np.zeros(0), out)
    assert out[0] == 0
    with pytest.raises(ValueError, match="has no min"):
        reduce(np.zeros(0), out, "min")
    with pytest.raises(ValueError, match="one of sum, min, max"):
        reduce(np.ones(1), out, "mean")
    with pytest.raises(ValueError, match="not one element"):
        reduce(np.ones(1), np.ones(2))


def test_scan() -> None:
    x, y = np.array([1.0, 2.0, 4.0]), np.empty(3)
    scan(x, y)
    np.testing.assert_array_equal(y, [1, 3, 7])
    for body in [v.function for v in scan.variants if v.kind == "cpu"]:
        body(x, y, True)
        np.testing.assert_array_equal(y, [0, 1, 3])


@every_dtype
def test_softmax(dtype: Any) -> None:
    x = Draw(4, dtype).normal(3, 5, 7)
    x[0, 0] = [1000, 999, 0, -1000, 0, 0, 0]
    y = np.empty_like(x)
    softmax(x, y)
    np.testing.assert_allclose(y, scipy.special.softmax(x, axis=-1), rtol=1e-5)
    np.testing.assert_allclose(y.sum(axis=-1), 1, rtol=1e-5)


def test_layernorm() -> None:
    x = 1000 + Draw(5, np.float64).normal(4, 50)
    y = np.empty_like(x)
    layernorm(x, np.ones(50), np.zeros(50), y, 0.0)
    np.testing.assert_allclose(y.mean(axis=1), 0, atol=1e-10)
    np.testing.assert_allclose(y.std(axis=1), 1, rtol=1e-10)
    z = np.empty_like(x)
    layernorm(x, np.full(50, 2.0), np.full(50, 3.0), z, 0.0)
    np.testing.assert_allclose(z, 2 * y + 3, rtol=1e-10)


def test_histogram() -> None:
    x = np.array([-0.1, 0.0, 0.24, 0.25, 0.99, 1.0, 1.01, np.nan])
    counts = np.zeros(4, np.int64)
    histogram(x, counts, 0.0, 1.0)
    np.testing.assert_array_equal(counts, [2, 1, 0, 2])
    np.testing.assert_array_equal(counts, np.histogram(x[:-1], 4, (0, 1))[0])


@pytest.mark.parametrize(
    ("counts", "low", "high"),
    [
        (np.zeros(0, np.int64), 0.0, 1.0),
        (np.zeros(2, np.int32), 0.0, 1.0),
        (np.zeros((2, 2), np.int64), 0.0, 1.0),
        (np.zeros(2, np.int64), 1.0, 1.0),
        (np.zeros(2, np.int64), 0.0, np.inf),
        (np.zeros(2, np.int64), np.nan, 1.0),
        (np.zeros(2, np.int64), 0.0, 1e-320),
    ],
)
def test_histogram_refuses(counts: Any, low: float, high: float) -> None:
    for body in [v.function for v in histogram.variants]:
        with pytest.raises(ValueError, match=r"no vector|cannot be divided|too narrow"):
            body(np.zeros(3), counts, low, high)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_spmv(index: Any) -> None:
    rng = np.random.default_rng(6)
    a = scipy.sparse.random(30, 20, 0.2, "csr", rng=rng)
    x, y = rng.standard_normal(20), np.empty(30)
    spmv(a.data, a.indices.astype(index), a.indptr.astype(index), x, y)
    np.testing.assert_allclose(y, a @ x, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("column", [-1, 2])
def test_spmv_refuses_columns_out_of_range(column: int) -> None:
    for body in [v.function for v in spmv.variants if v.kind == "cpu"]:
        with pytest.raises(IndexError, match="column of A is not in x"):
            body(np.ones(1), np.array([column]), np.array([0, 1]), np.ones(2), np.ones(1))


def test_kmeans_assign_takes_the_first_of_equals() -> None:
    points, centres = np.array([[0.0], [1.0], [5.0]]), np.array([[2.0], [0.0], [2.0], [4.0]])
    labels, distances = np.zeros(3, np.int32), np.zeros(3)
    for body in [v.function for v in kmeans_assign.variants if v.kind == "cpu"]:
        body(points, centres, labels, distances)
        np.testing.assert_array_equal(labels, [1, 0, 3])
        np.testing.assert_array_equal(distances, [0, 1, 1])
    with pytest.raises(ValueError, match="do not fit"):
        kmeans_assign(points, centres[:0], labels, distances)


def test_transpose_of_parts() -> None:
    x, y = np.arange(12.0).reshape(3, 4)[:, ::2], np.empty((2, 3))
    assert not any(v.when(x, y) for v in transpose.variants[1:] if v.kind == "cpu")
    transpose(x, y)
    np.testing.assert_array_equal(y, x.T)
