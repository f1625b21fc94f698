"""Do two devices do twice as much as one?  Two chains of products on two halves of a processor.

The halves are PoCL's sub-devices, one core or more each, so a chain is equally fast on either.  How
much faster two threads are than one that hash the same bytes says what the machine had to give.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import legato_rt as lrt
from bench.evaluation import Row, by_turns, figure, ratios
from legato_rt.kernels.gemm import gemm

ENVIRONMENT = {"LEGATO_RT_OPENCL_PARTS": "2"}
LENGTH = 20
SIDE = 768
BYTES = bytes(50_000_000)
TARGET = 1.6
"""How much sooner, at least, two chains are done on two devices."""


class Apart(lrt.Policy):
    """Sends a task to the device that it is named after, if the runtime has it."""

    timed = True  # so that it is asked about what the program submits, too
    chains = False

    def place(self, node: Any, able: Sequence[int], by: int) -> int:
        """The first worker of that device, or of any."""
        mine = (worker for worker in able if self.workers[worker] == node.options.name)
        return next(mine, able[0])


def run(devices: str) -> None:
    """Run the two chains; each link adds to the same result, so it waits for the one before."""
    a, b = np.ones((2, SIDE, SIDE), np.float32)
    results = np.zeros((2, SIDE, SIDE), np.float32)
    with lrt.Runtime(devices=devices, policy=Apart()) as rt:
        for _ in range(LENGTH):
            for number, result in enumerate(results):
                gemm.options(name=f"opencl:{number}").submit(a, b, result)
        lrt.wait(results)
        used = {row.device for row in rt.report().kinds}
    if used != set(devices.split(",")):
        raise RuntimeError(f"the chains ran on {sorted(used)}, not on {devices}")


def hash_on(threads: int) -> None:
    """Hash the same bytes twice: one after the other, or at once."""
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda _: hashlib.sha256(BYTES).digest(), range(2)))


def rows(repetitions: int) -> list[Row]:
    """The ratio of both times, and the same of the plain threads."""
    contenders = {
        "one": lambda: run("opencl:0"),
        "two": lambda: run("opencl:0,opencl:1"),
        "one thread": lambda: hash_on(1),
        "two threads": lambda: hash_on(2),
    }
    by_turns(contenders, 1)  # compiles
    samples = by_turns(contenders, repetitions)
    one, two, alone, together = ([span.wall_s for span in spans] for spans in samples.values())
    threads = figure("streams.two_threads", ratios(alone, together), "x as fast", better="higher")
    return [
        figure(
            "streams.two_devices",
            ratios(one, two),
            "x as fast",
            target=TARGET,
            better="higher",
            baseline=threads.value,
        ),
        threads,
    ]
