"""Runs every OpenCL kernel as kind ``fpga`` and prints, as JSON, what came of it.

``python -m tests.helpers.fpga_run save FOLDER`` compiles what the folder lacks and puts it there;
``… load FOLDER`` takes all programs from it, and fails for one that is not there.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import legato_rt as lrt
from legato_rt.kernels import device_launch
from legato_rt.kernels.samples import SAMPLES, Sample

SIZES = {1: (70,), 2: (9, 11), 3: (9, 7, 5), 4: (2, 4, 2, 3)}

launched: set[str] = set()


class Recorded(device_launch._Built):
    """A program that notes which of its kernels are launched, and what it was made from."""

    def launch(self, kernel: str, *args: Any) -> None:
        launched.add(kernel)
        super().launch(kernel, *args)


def rows(sample: Sample) -> list[dict[str, Any]]:
    """Each variant against the reference, on small arguments of both precisions."""
    sizes = SIZES[len(sample.sizes)]
    calls = [sample.arguments(dtype, 1, sizes) for dtype in (np.float32, np.float64)]
    found = lrt.check(sample.task, calls, devices="fpga")
    return [{**asdict(row), "ok": row.ok} for row in found]


def main(mode: str, folder: str) -> None:
    """Run all kernels."""
    device_launch._Built = Recorded  # type: ignore[misc]
    device_launch.use_binaries(Path(folder), save=mode == "save")
    found = [row for sample in SAMPLES for row in rows(sample)]
    files = len(list(Path(folder).iterdir()))
    json.dump({"rows": found, "kernels": sorted(launched), "files": files}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
