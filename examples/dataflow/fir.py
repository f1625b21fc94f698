"""A filter as a task: a reference for any CPU, and a pipeline of kernels for FPGAs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import legato_rt as lrt
from legato_rt import In, Out

Signal = npt.NDArray[np.float32]
MOST_TAPS = 16
SOURCE = Path(__file__).with_name("pipeline.cl")

binary: Path | None = None
"""A file that the pipeline is loaded from, and kept in if it is not there; else it is compiled."""


@lrt.task(rtol=1e-5)
def fir(x: In[Signal], taps: In[Signal], y: Out[Signal]) -> None:
    """Write the causal convolution of a signal with up to 16 taps."""
    y[...] = np.convolve(x, taps)[: len(x)]


@fir.variant("fpga", when=lambda x, taps, y: 0 < len(taps) <= MOST_TAPS)
def fir_pipeline(x: Any, taps: Any, y: Any) -> None:
    """Start all three stages; each has a queue of its own, or they would run one by one."""
    import pyopencl

    from legato_rt.devices.opencl import kernel

    n = np.int32(x.size)
    stages = {
        "produce": (x.data, n),
        "filter": (taps.data, np.int32(taps.size), n),
        "consume": (y.data, n),
    }
    queues = [pyopencl.CommandQueue(y.context, y.queue.device) for _ in stages]
    for queue, (name, args) in zip(queues, stages.items(), strict=True):
        options = (f"-DMOST_TAPS={MOST_TAPS}",)
        stage = kernel(queue, name, source=SOURCE, binary=binary, options=options)
        stage(queue, (1,), (1,), *args)
        queue.flush()
    for queue in queues:
        queue.finish()
