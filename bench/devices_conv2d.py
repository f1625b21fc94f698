"""How fast is the convolution on a CPU beside PyTorch's, on all layers of both networks?

One thread each, in one process, by turns; compared is processor time, which other load hardly
changes.  PyTorch is given the same memory layout, channels last.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.evaluation import Row, by_turns, figure, ratios
from legato_rt.kernels.conv2d import conv2d

ENVIRONMENT = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
SHAPES = ((8, 1, 16), (8, 16, 32), (8, 1, 32), (8, 32, 64), (4, 64, 128), (4, 128, 128))
"""Side of the image, channels in and out: the small network's layers, then the large one's."""

IMAGES = 32
"""In a micro-batch of ``apps/train``."""

TARGET = 0.5
"""Least share of PyTorch's speed."""

MISSING = "skipped, for PyTorch is not installed: pip install torch==2.13.0"
ROUND_S = 5e-3
Call = Callable[[], object]


def contenders(torch: Any, side: int, channels: int, outputs: int) -> tuple[Call, Call]:
    """Both convolutions of the same images.

    Raises
    ------
    RuntimeError
        If they disagree.
    """
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> Any:
        return rng.standard_normal(shape).astype(np.float32)

    x, w = normal(IMAGES, side, side, channels), normal(3, 3, channels, outputs)
    b, y = normal(outputs), normal(IMAGES, side, side, outputs)
    variant = next(v for v in reversed(conv2d.variants) if v.kind == "cpu")
    images, bias = torch.from_numpy(x).permute(0, 3, 1, 2), torch.from_numpy(b)
    filters = torch.from_numpy(w).permute(3, 2, 0, 1)
    filters = filters.contiguous(memory_format=torch.channels_last)

    def ours() -> object:
        return variant.function(x, w, b, y, 1)

    def theirs() -> Any:
        with torch.inference_mode():
            return torch.nn.functional.conv2d(images, filters, bias, padding=1)

    ours()
    if not np.allclose(theirs().permute(0, 2, 3, 1).numpy(), y, rtol=1e-3, atol=1e-3):
        raise RuntimeError("PyTorch gives another convolution")
    return ours, theirs


def repeated(call: Call, seconds_each: float) -> Call:
    """Enough calls to time together."""
    count = max(1, int(ROUND_S / seconds_each))

    def run() -> None:
        for _ in range(count):
            call()

    return run


def rows(repetitions: int) -> list[Row]:
    """Share of PyTorch's speed for every layer."""
    if importlib.util.find_spec("torch") is None:
        return [Row(f"conv2d.by_torch: {MISSING}", 0.0, "")]
    torch: Any = importlib.import_module("torch")
    torch.set_num_threads(1)
    found: list[Row] = []
    for shape in SHAPES:
        calls = dict(zip(("ours", "theirs"), contenders(torch, *shape), strict=True))
        once = by_turns(calls, 2)
        seconds = min(span.wall_s for span in once["ours"])
        rounds = {name: repeated(call, seconds) for name, call in calls.items()}
        samples = by_turns(rounds, 3 * repetitions)
        ours, theirs = ([span.cpu_s for span in samples[name]] for name in ("ours", "theirs"))
        side, channels, outputs = shape
        name = f"conv2d.{side}x{side}x{channels}_{outputs}"
        share = ratios(theirs, ours)
        found.append(figure(name, share, "of PyTorch's speed", target=TARGET, better="higher"))
    return found
