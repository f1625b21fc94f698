"""Runs every kernel, small, on Oclgrind's simulated device; prints the names of those that ran.

To be run with ``OCLGRIND_LOG`` and what else Oclgrind shall look for set.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array

from legato_rt.kernels import device_launch
from legato_rt.kernels.device_source import SOURCES
from legato_rt.kernels.samples import SAMPLES
from tests.helpers.device_kernels import assert_same, expect, variant

SIZES = {1: (70,), 2: (9, 11), 3: (9, 7, 5), 4: (2, 4, 2, 3)}
BEFORE = 2
LANES = 8

launched: set[str] = set()


class Recorded(device_launch._Built):
    """A program that notes which of its kernels are launched."""

    def launch(self, kernel: str, *args: Any) -> None:
        launched.add(kernel)
        super().launch(kernel, *args)


def put(queue: Any, array: Any) -> Any:
    """Return a copy on the device that ends where its memory ends."""
    if not isinstance(array, np.ndarray) or array.size == 0:
        return array
    whole = np.concatenate((np.zeros(BEFORE, array.dtype), array.reshape(-1)))
    return cl_array.to_device(queue, whole)[BEFORE:].reshape(array.shape)


def run(queue: Any, dtype: Any) -> None:
    for sample in SAMPLES:
        sizes = SIZES[len(sample.sizes)]
        args, want = (sample.arguments(dtype, 1, sizes) for _ in range(2))
        on_device = [put(queue, arg) for arg in args]
        variant(sample.task, "opencl")(*on_device)
        queue.finish()
        expect(sample.task, want)
        got = [arg.get() if hasattr(arg, "get") else arg for arg in on_device]
        assert_same(got, want)


def main() -> None:
    (platform,) = (p for p in cl.get_platforms() if "Oclgrind" in p.name)
    queue = cl.CommandQueue(cl.Context(platform.get_devices()))
    device_launch._Built = Recorded  # type: ignore[misc]
    run(queue, np.float32)
    for source in SOURCES.values():
        source.lanes = source.lanes and LANES
    wide = device_launch.Traits("opencl", scalar=False, vector_bytes=16)
    device_launch._opencl_traits = lambda device: wide  # type: ignore[assignment]
    run(queue, np.float64)
    print(*sorted(launched))


if __name__ == "__main__":
    main()
