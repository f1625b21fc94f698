"""What is the OpenCL product worth beside the simplest kernel, on the same device?"""

from __future__ import annotations

from typing import Any

import numpy as np

import legato_rt as lrt
from bench.evaluation import Row, figure, ratios
from legato_rt import In, InOut
from legato_rt.kernels.gemm import gemm

SIDE = 512
TARGET = 3.0
"""How many times as fast as the simplest kernel the product is, at least."""

SOURCE = """
// One item per element of c, nothing kept from one item to another. Neither the size of
// the groups nor `restrict` changes what PoCL makes of it by more than a third.
__kernel void product(const int n, __global const float *a, __global const float *b,
                      __global float *c) {
    const int i = get_global_id(1), j = get_global_id(0);
    float sum = 0;
    for (int k = 0; k < n; k++) sum += a[i * n + k] * b[k * n + j];
    c[i * n + j] += sum;
}
"""


@lrt.task(rtol=1e-5)
def simplest(a: In[Any], b: In[Any], c: InOut[Any]) -> None:
    """Add a·b to c."""
    c += a @ b


_kernels: dict[Any, Any] = {}


@simplest.variant("opencl")
def simplest_opencl(a: Any, b: Any, c: Any) -> None:
    """Use an item per element of c."""
    import pyopencl

    kernel = _kernels.get(c.queue)
    if kernel is None:
        program = pyopencl.Program(c.context, SOURCE).build(["-cl-std=CL1.2"])
        kernel = _kernels[c.queue] = program.product
    kernel(c.queue, c.shape, None, np.int32(len(c)), a.data, b.data, c.data)


def times(repetitions: int) -> dict[str, list[float]]:
    """Seconds of each run of both tasks, by turns, on the first OpenCL device.

    Raises
    ------
    RuntimeError
        If they disagree.
    """
    rng = np.random.default_rng(0)
    a, b = (rng.random((SIDE, SIDE), np.float32) for _ in range(2))
    results = np.zeros((2, SIDE, SIDE), np.float32)
    with lrt.Runtime(devices="opencl:0", trace=True) as rt:
        for _ in range(repetitions):
            gemm.submit(a, b, results[0])
            lrt.wait()  # nothing else may run beside it
            simplest.submit(a, b, results[1])
            lrt.wait()
        lrt.wait(results)
        records = list(rt.trace)
    if not np.allclose(results[0], results[1], rtol=1e-4):
        raise RuntimeError("the two kernels give different products")
    return {
        name: [(r.stop_ns - r.start_ns) / 1e9 for r in records if r.task == name]
        for name in ("gemm", "simplest")
    }


def rows(repetitions: int) -> list[Row]:
    """The ratio of the speeds, and ours in GFLOP/s."""
    times(4)  # compiles, on both workers' queues
    seconds = times(2 * repetitions)
    faster = ratios(seconds["simplest"], seconds["gemm"])
    speeds = [2 * SIDE**3 / s / 1e9 for s in seconds["gemm"]]
    simple = 2 * SIDE**3 / float(np.median(seconds["simplest"])) / 1e9
    return [
        figure("gemm.by_simplest", faster, "x as fast", target=TARGET, better="higher"),
        figure("gemm.speed", speeds, "GFLOP/s", better="higher", baseline=simple),
    ]
