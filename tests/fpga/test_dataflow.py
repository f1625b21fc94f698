"""The example pipeline that streams through channels, on Intel's emulator."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import legato_rt as lrt
from examples.dataflow import fir as pipeline
from legato_rt.devices import opencl, opencl_discovery

pytestmark = [
    pytest.mark.fpga,
    pytest.mark.filterwarnings("ignore:Non-empty compiler output:UserWarning"),
]

ROOT = Path(__file__).resolve().parents[2]


def test_the_emulator_is_an_emulated_fpga() -> None:
    (device,) = opencl.fpga_backend.discover()
    assert "emulated" in device.detail
    assert device.simulated
    assert device.accepts == ("fpga", "opencl")
    assert opencl.fpga_backend.problems() == []
    assert "cl_intel_channels" in opencl_discovery.devices("fpga")[device.name].extensions


@pytest.mark.parametrize("samples", [1, 2500])
def test_a_pipeline_streams_a_signal(samples: int) -> None:
    """More samples than the channels hold: the stages run at the same time, or never end."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((3, samples)).astype(np.float32)
    taps = np.hanning(11).astype(np.float32)
    y, wanted = np.empty_like(x), np.empty_like(x)
    for signal, filtered in zip(x, wanted, strict=True):
        pipeline.fir(signal, taps, filtered)
    with lrt.Runtime(devices="fpga", trace=True) as rt:
        for signal, filtered in zip(x, y, strict=True):
            pipeline.fir.submit(signal, taps, filtered)
        rt.wait(y)
        assert {r.variant for r in rt.trace} == {"fir_pipeline"}
    np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)


def test_it_runs_as_a_program_from_a_file(tmp_path: Path) -> None:
    binary = tmp_path / "pipeline.aocx"
    code = "from legato_rt.cli import main; main()"
    command = [sys.executable, "-c", code, "run", "examples/dataflow", "--samples", "1500"]
    for _ in range(2):
        run = subprocess.run(
            [*command, "--binary", str(binary)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=200,
        )
        assert run.returncode == 0, run.stderr
        assert "8 of 8 signals on fpga:0" in run.stdout
        assert "emulated" in run.stdout
        assert binary.stat().st_size > 0
