"""Do copies to and from a device go on while it computes?  Read off the trace of a pipeline."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import legato_rt as lrt
from bench.evaluation import Row, figure
from legato_rt.kernels.gemm import gemm

TASKS = 48
SIDE = 512
TARGET = 0.3
"""The share, at least, of the time of all copies in which the device computes something else."""

Spans = Sequence[tuple[int, int]]


def covered(spans: Spans, by: Spans) -> int:
    """How much of some spans lies inside the union of others."""
    merged: list[list[int]] = []
    for start, stop in sorted(by):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], stop)
        else:
            merged.append([start, stop])
    return sum(
        max(0, min(stop, other) - max(start, first))
        for start, stop in spans
        for first, other in merged
    )


def share() -> float:
    """Share of the copies' time inside other tasks' bodies, in a pipeline of products.

    Each has operands of its own to bring and a result to fetch, for which the program waits while
    later ones run.
    """
    rng = np.random.default_rng(0)
    a, c = (rng.random((TASKS, SIDE, SIDE), np.float32) for _ in range(2))
    with lrt.Runtime(devices="opencl:0", trace=True) as rt:
        for i in range(TASKS):
            gemm.submit(a[i], a[i - 1], c[i])
        for i in range(TASKS):
            lrt.wait(c[i])
        trace = rt.trace
    copies = [(copy.start_ns, copy.stop_ns) for copy in trace.copies]
    bodies = [(record.start_ns, record.stop_ns) for record in trace]
    return covered(copies, bodies) / sum(stop - start for start, stop in copies)


def rows(repetitions: int) -> list[Row]:
    """The one figure."""
    share()  # compiles
    shares = [share() for _ in range(repetitions)]
    return [figure("overlap.copies", shares, "of their time", target=TARGET, better="higher")]
