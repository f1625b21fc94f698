"""Every OpenCL kernel, run by PoCL: against NumPy, and for what it must not touch."""

import gc
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legato_rt.kernels import device_launch, device_network
from legato_rt.kernels.axpy import AXPY, axpy
from legato_rt.kernels.device_factors import potrf_device
from legato_rt.kernels.device_products import multiply, tiles
from legato_rt.kernels.histogram import histogram
from legato_rt.kernels.reduce import reduce
from legato_rt.kernels.samples import SAMPLES, Draw, Sample
from legato_rt.kernels.scan import scan
from legato_rt.kernels.spmv import spmv
from tests.helpers.device_kernels import Guarded, assert_same, edges, expect, spoil, variant

cl = pytest.importorskip("pyopencl", exc_type=ImportError)
cl_array = pytest.importorskip("pyopencl.array", exc_type=ImportError)

DTYPES = [np.float32, np.float64]
BY_NAME = {sample.task.name: sample for sample in SAMPLES}
every_sample = pytest.mark.parametrize("sample", SAMPLES, ids=BY_NAME)
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])

# Their blocks are solved by other means than the reference's, so that NaN spreads otherwise.
FACTORS = ("trsm", "potrf")
# What a GPU does in another way: products, and rows shared by the lanes of a group.
OTHERWISE = (
    *("reduce", "scan", "softmax", "layernorm", "histogram", "spmv", "softmax_cross_entropy"),
    *("softmax_cross_entropy_grad", "gemm", "syrk", "trsm", "potrf", "dense", "conv2d"),
)


def pocl() -> Any:
    """Return PoCL's device, or skip."""
    for platform in cl.get_platforms():
        if "Portable Computing Language" in platform.name:
            return platform.get_devices()[0]
    pytest.skip("PoCL is not installed")


@pytest.fixture(scope="module")
def queue() -> Any:
    return cl.CommandQueue(cl.Context([pocl()]))


def check(task: Any, queue: Any, args: Any, want: Any) -> None:
    """Run the OpenCL variant on `args` and the reference on `want`, which are equal."""
    expect(task, want)
    on_device = Guarded(queue, args)
    variant(task, "opencl")(*on_device.args)
    assert_same(on_device.get(), want)


def both(sample: Sample, dtype: Any, seed: int, sizes: tuple[int, ...]) -> tuple[Any, Any]:
    return sample.arguments(dtype, seed, sizes), sample.arguments(dtype, seed, sizes)


@every_dtype
@every_sample
def test_edges(sample: Sample, dtype: Any, queue: Any) -> None:
    for sizes in edges(sample):
        check(sample.task, queue, *both(sample, dtype, 1, sizes))


@every_sample
def test_any_shape(sample: Sample, queue: Any) -> None:
    largest = {1: 300, 2: 70, 3: 40, 4: 12}[len(sample.sizes)]
    shapes = st.tuples(*(st.integers(0, largest) for _ in sample.sizes))

    @settings(max_examples=10)
    @given(sizes=shapes, dtype=st.sampled_from(DTYPES), seed=st.integers(0, 1000))
    def run(sizes: tuple[int, ...], dtype: Any, seed: int) -> None:
        check(sample.task, queue, *both(sample, dtype, seed, sizes))

    run()


@every_dtype
@pytest.mark.parametrize("name", [name for name in BY_NAME if name not in FACTORS])
def test_not_finite(name: str, dtype: Any, queue: Any) -> None:
    sample = BY_NAME[name]
    for seed in range(4):
        args, want = both(sample, dtype, seed, sample.sizes)
        spoil(sample, args, seed)
        spoil(sample, want, seed)
        check(sample.task, queue, args, want)


@every_dtype
@pytest.mark.parametrize("name", OTHERWISE)
def test_as_on_a_gpu(name: str, dtype: Any, queue: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = BY_NAME[name]
    wide = device_launch.Traits("opencl", scalar=False, vector_bytes=16)
    monkeypatch.setattr(device_launch, "_opencl_traits", lambda device: wide)
    for sizes in edges(sample):
        check(sample.task, queue, *both(sample, dtype, 2, sizes))


@every_dtype
@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
def test_products_on_any_processor(
    vector_bytes: int, dtype: Any, queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    traits = device_launch.Traits("opencl", scalar=True, vector_bytes=vector_bytes)
    monkeypatch.setattr(device_launch, "_opencl_traits", lambda device: traits)
    for sizes in ((1, 1, 1), (13, 7, 11), (40, 33, 70)):
        check(BY_NAME["gemm"].task, queue, *both(BY_NAME["gemm"], dtype, 3, sizes))


@settings(max_examples=40)
@given(
    sizes=st.tuples(*[st.integers(0, 40)] * 3),
    flags=st.tuples(st.booleans(), st.booleans(), st.booleans()),
    factors=st.sampled_from([(1.0, 1.0), (-0.5, 0.0), (2.0, -1.0)]),
    dtype=st.sampled_from(DTYPES),
    by_tiles=st.booleans(),
)
def test_products(
    sizes: Any, flags: Any, factors: Any, dtype: Any, by_tiles: bool, queue: Any
) -> None:
    """All transposes, factors and triangles; with beta 0 what was in c must not matter."""
    (m, k, n), (turn_a, turn_b, lower), (alpha, beta) = sizes, flags, factors
    draw = Draw(7, dtype)
    a, b, c = draw.normal(m, k), draw.normal(k, n), draw.normal(m, n)
    want = alpha * a.astype(np.float64) @ b + beta * c
    if beta == 0:
        c[...] = np.nan
    if lower:
        want = np.where(np.tri(m, n, dtype=bool), want, c)
    stored = [x.T.copy() if turn else x for x, turn in ((a, turn_a), (b, turn_b))]
    device = Guarded(queue, (*stored, c))
    if by_tiles and c.size:
        steps = [(1, m) if turn_a else (k, 1), (1, k) if turn_b else (n, 1)]
        x, y, z = device.args
        tail = beta, z, n, lower
        tiles((m, n, k), (x, *steps[0]), (y, *steps[1]), alpha, tail)
    else:
        multiply(*device.args, alpha, beta, turn_a, turn_b, lower)
    assert_same(device.get()[2:], [want.astype(dtype)])


@every_dtype
@pytest.mark.parametrize("operation", ["sum", "min", "max"])
@pytest.mark.parametrize("n", [1, 17, 4097, 70000])
def test_reductions(operation: str, n: int, dtype: Any, queue: Any) -> None:
    for spoiled in (False, True):
        x = Draw(4, dtype).normal(n)
        if spoiled:
            x[n // 2] = np.nan
        args = [(x, np.zeros(1, dtype), operation) for _ in range(2)]
        check(reduce, queue, *args)


@every_dtype
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("n", [1, 4097, 70000])
def test_scans(exclusive: bool, n: int, dtype: Any, queue: Any) -> None:
    args = [(Draw(5, dtype).normal(n), np.zeros(n, dtype), exclusive) for _ in range(2)]
    check(scan, queue, *args)


@every_dtype
@pytest.mark.parametrize("bins", [1, 2048, 2049, 5000])
def test_histogram_of_many_bins(bins: int, dtype: Any, queue: Any) -> None:
    """More than fit into local memory, and elements on both ends of the range and beside it."""
    x = Draw(6, dtype).normal(10000)
    x[:6] = -1.0, 1.0, np.nextafter(dtype(1), dtype(2)), np.nextafter(dtype(-1), dtype(-2)), 0, -0.0
    args = [(x, np.full(bins, -1, np.int64), -1.0, 1.0) for _ in range(2)]
    check(histogram, queue, *args)
    assert args[1][1].sum() == ((x >= -1) & (x <= 1)).sum()


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sparse_indices(index: Any, queue: Any) -> None:
    pairs = both(BY_NAME["spmv"], np.float32, 8, (50, 40))
    args, want = (
        (values, columns.astype(index), starts.astype(index), x, y)
        for values, columns, starts, x, y in pairs
    )
    check(spmv, queue, args, want)


def test_a_column_out_of_range_gives_nan(queue: Any) -> None:
    values, x = np.ones(3, np.float32), np.ones(2, np.float32)
    columns, starts = np.array([0, 2, -1], np.int32), np.array([0, 1, 2, 3], np.int32)
    device = Guarded(queue, (values, columns, starts, x, np.zeros(3, np.float32)))
    variant(spmv, "opencl")(*device.args)
    np.testing.assert_array_equal(device.get()[4], [1, np.nan, np.nan])


@pytest.mark.parametrize("name", ["softmax_cross_entropy", "softmax_cross_entropy_grad"])
def test_classes_of_32_bits(name: str, queue: Any) -> None:
    args, want = (list(a) for a in both(BY_NAME[name], np.float32, 9, (20, 7)))
    args[1] = args[1].astype(np.int32)
    expect(BY_NAME[name].task, want)
    device = Guarded(queue, args)
    variant(BY_NAME[name].task, "opencl")(*device.args)
    assert_same(device.get()[2:], want[2:])


def test_a_class_out_of_range_gives_nan(queue: Any) -> None:
    scores, classes = np.zeros((3, 2), np.float32), np.array([1, 2, -1])
    device = Guarded(queue, (scores, classes, np.zeros(3, np.float32)))
    device_network.softmax_cross_entropy_device(*device.args)
    np.testing.assert_allclose(device.get()[2], [np.log(2), np.nan, np.nan], rtol=1e-6)


@every_dtype
def test_no_factor_raises(dtype: Any, queue: Any) -> None:
    """What was done before the bad pivot stays, and the upper triangle."""
    a = np.eye(70, dtype=dtype)
    a[50, 50] = -1
    a[0, 1] = 5
    device = Guarded(queue, (a,))
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        potrf_device(*device.args)
    (got,) = device.get()
    np.testing.assert_array_equal(got[:50], a[:50])
    assert np.isnan(got[50, 50])


@every_dtype
@pytest.mark.parametrize(("pad", "stride"), [(0, 1), (1, 1), (2, 3)])
@pytest.mark.parametrize("cache_bytes", [1, 1 << 24])
def test_convolutions(
    pad: int, stride: int, cache_bytes: int, dtype: Any, queue: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Image by image and all at once, with filters that meet the border in every way."""
    monkeypatch.setattr(device_network, "CACHE_BYTES", cache_bytes)
    draw = Draw(10, dtype)
    x, w, b = draw.normal(3, 7, 6, 2), draw.normal(3, 2, 2, 5), draw.normal(5)
    dy = draw.normal(3, (4 + 2 * pad) // stride + 1, (4 + 2 * pad) // stride + 1, 5)
    cases = {
        "conv2d": (x, w, b, dy),
        "conv2d_input_grad": (dy, w, x),
        "conv2d_weight_grad": (x, dy, w, b),
    }
    for name, arrays in cases.items():
        args, want = ([*(a.copy() for a in arrays), pad, stride] for _ in range(2))
        check(BY_NAME[name].task, queue, args, want)


def test_built_once(queue: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads with queues of their own on one context share what one of them compiles."""
    compiled = []
    compile_ = device_launch._compile
    monkeypatch.setattr(
        device_launch, "_compile", lambda *args: compiled.append(args) or compile_(*args)
    )
    context = cl.Context(queue.context.devices)
    ready = threading.Barrier(4)
    results: list[Any] = []

    def work() -> None:
        own = cl.CommandQueue(context)
        x, y = (cl_array.to_device(own, np.ones(1000, np.float32)) for _ in range(2))
        ready.wait()
        for _ in range(20):
            variant(axpy, "opencl")(1.0, x, y)
        results.append(y.get())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(compiled) == 1
    assert len(results) == 4
    assert all((result == 21).all() for result in results)


def test_programs_go_with_their_queues(queue: Any) -> None:
    own = cl.CommandQueue(cl.Context(queue.context.devices))
    x, y = (cl_array.to_device(own, np.ones(10, np.float32)) for _ in range(2))
    variant(axpy, "opencl")(1.0, x, y)
    y.get()
    (program,) = map(weakref.ref, own.legato_rt_programs.values())
    assert program() in device_launch._shared.values()
    del own, x, y
    gc.collect()
    assert program() is None


def test_binaries(queue: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was saved is loaded without the source; what is missing is not compiled."""

    def run() -> str:
        """Return the source that the program was made from."""
        own = cl.CommandQueue(cl.Context(queue.context.devices))
        x, y = (cl_array.to_device(own, np.ones(10, np.float32)) for _ in range(2))
        variant(axpy, "opencl")(2.0, x, y)
        np.testing.assert_array_equal(y.get(), 3)
        (built,) = own.legato_rt_programs.values()
        source: str = built.program.get_info(cl.program_info.SOURCE)
        return source

    monkeypatch.setattr(device_launch, "_binaries", None)
    device_launch.use_binaries(tmp_path)
    with pytest.raises(FileNotFoundError, match="axpy-"):
        run()
    device_launch.use_binaries(tmp_path, save=True)
    assert run() == ""
    (file,) = tmp_path.iterdir()
    options = AXPY.options("opencl", np.float32)
    assert file.name == device_launch.binary_name(AXPY, queue.device, options)
    device_launch.use_binaries(tmp_path)
    assert run() == ""
    device_launch.use_binaries(None)
    assert "axpy" in run()
