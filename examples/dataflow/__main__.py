"""Filters a batch of signals on an FPGA, each signal a task."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import numpy as np

import legato_rt as lrt

from . import fir as pipeline


def main() -> None:
    """Run the pipeline on every signal and compare with NumPy."""
    parser = argparse.ArgumentParser(prog="dataflow", description=__doc__)
    parser.add_argument("--devices", default="fpga", help="names or kinds (%(default)s)")
    parser.add_argument("--signals", type=int, default=8, help="how many (%(default)s)")
    parser.add_argument("--samples", type=int, default=2_000, help="of each (%(default)s)")
    parser.add_argument("--binary", type=Path, help="load the pipeline from this file, or keep it")
    given = parser.parse_args()
    pipeline.binary = given.binary
    rng = np.random.default_rng(1)
    x = rng.standard_normal((given.signals, given.samples)).astype(np.float32)
    taps = np.hanning(9).astype(np.float32)
    y = np.empty_like(x)
    with lrt.Runtime(devices=given.devices, trace=True) as rt:
        for signal, filtered in zip(x, y, strict=True):
            pipeline.fir.submit(signal, taps, filtered)
        rt.wait(y)
        where = Counter(rt.trace.devices[record.worker] for record in rt.trace)
        detail = {d.name: d.detail for d in rt.machine.devices}
    wanted = np.stack([np.convolve(signal, taps)[: given.samples] for signal in x])
    for device, count in sorted(where.items()):
        print(f"{count} of {given.signals} signals on {device}: {detail[device]}")
    print(f"largest difference from NumPy: {np.abs(y - wanted).max():.2g}")


if __name__ == "__main__":
    main()
