"""The CUDA driver on a GPU: order between CuPy and Numba, overlap, and a memory that is full."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import legato_rt as lrt
from legato_rt import In, InOut
from legato_rt.errors import BuildError, DeviceError, TaskError

pytestmark = pytest.mark.gpu

Array = npt.NDArray[Any]
SOURCE = r"""
extern "C" __global__ void spin(float *x, long long turns) {
    float value = x[threadIdx.x];
    for (long long i = 0; i < turns; i++) value = value * 0.999f + 1.0f;
    x[threadIdx.x] = value;
}
"""


@lrt.task
def twice(x: InOut[Array]) -> None:
    x *= 2


@lrt.task
def spin(x: InOut[Array], turns: int) -> None:
    raise AssertionError("for the GPU alone")


@spin.variant("cuda")
def spin_cuda(x: Any, turns: int) -> None:
    import cupy

    cupy.RawKernel(SOURCE, "spin")((1,), (x.size,), (x, np.int64(turns)))


@twice.variant("cuda")
def twice_cuda(x: Any) -> None:
    x *= 2


def test_numba_on_the_default_stream_keeps_its_place_among_cupys_work() -> None:
    cuda = pytest.importorskip("numba.cuda")

    @cuda.jit
    def increment(x: Any) -> None:
        i = cuda.grid(1)
        if i < x.size:
            x[i] += 1

    @lrt.task
    def mixed(x: InOut[Array], rounds: int) -> None:
        for _ in range(rounds):
            x *= 2
            x += 1

    @mixed.variant("cuda")
    def mixed_cuda(x: Any, rounds: int) -> None:
        for _ in range(rounds):
            x *= 2
            increment[(x.size + 255) // 256, 256](x)

    x = np.ones(1 << 20)
    with lrt.Runtime(devices="cuda:0") as rt:
        for _ in range(20):
            mixed.submit(x, 2)
        rt.wait(x)
    expected = np.ones(1)
    for _ in range(20):
        mixed.function(expected, 2)
    np.testing.assert_array_equal(x, np.full(x.shape, expected[0]))


def test_copies_are_made_while_the_gpu_computes() -> None:
    arrays = [np.ones((1 << 23) // 4, np.float32) for _ in range(8)]
    small = [np.ones(32, np.float32) for _ in range(8)]

    @lrt.task
    def use(x: InOut[Array], y: In[Array]) -> None:
        raise AssertionError("for the GPU alone")

    @use.variant("cuda")
    def use_cuda(x: Any, y: Any) -> None:
        spin_cuda(x, 20_000_000)

    with lrt.Runtime(devices="cuda:0", trace=True) as rt:
        for x, y in zip(small, arrays, strict=True):
            use.submit(x, y)
        rt.wait()
        trace = rt.trace
    large = [c for c in trace.copies if c.what == "upload" and c.nbytes == arrays[0].nbytes]
    overlaps = [
        copy
        for copy in large
        for body in trace
        if copy.start_ns < body.stop_ns and body.start_ns < copy.stop_ns
    ]
    assert overlaps


def test_more_data_than_the_memory_holds_goes_through() -> None:
    arrays = [np.full(1 << 18, i, np.float64) for i in range(16)]
    with lrt.Runtime(devices="cuda:0", memory_limit=3 * arrays[0].nbytes) as rt:
        for _ in range(3):
            for x in arrays:
                twice.submit(x)
        rt.wait(arrays)
    for i, x in enumerate(arrays):
        np.testing.assert_array_equal(x, np.full(x.shape, 8.0 * i))


def test_errors_at_the_edge() -> None:
    @lrt.task
    def wrong(x: InOut[Array]) -> None: ...

    @wrong.variant("cuda")
    def wrong_cuda(x: Any) -> None:
        import cupy

        cupy.RawKernel('extern "C" __global__ void k() {\n  wrong;\n}', "k")((1,), (1,), ())

    @lrt.task
    def large(x: InOut[Array]) -> None: ...

    @large.variant("cuda")
    def large_cuda(x: Any) -> None:
        import cupy

        grid, block = (1,), (4096,)
        cupy.RawKernel(SOURCE, "spin")(grid, block, (x, np.int64(1)))

    x = np.ones(32, np.float32)
    for task, kind, said in ((wrong, BuildError, "wrong;"), (large, DeviceError, "asked")):
        with lrt.Runtime(devices="cuda:0"):
            with pytest.raises(TaskError) as caught:
                task.submit(x).result()
            assert isinstance(caught.value.__cause__, kind)
            assert said in str(caught.value.__cause__)
