"""Every OpenCL kernel as kind ``fpga``, from prebuilt binary files, on Intel's emulator."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import legato_rt as lrt
from apps.cholesky.factor import random_matrix, submit_cholesky
from legato_rt.kernels import device_launch
from legato_rt.kernels.gemm import gemm
from legato_rt.kernels.samples import SAMPLES
from legato_rt.kernels.syrk import syrk
from legato_rt.node import Node
from legato_rt.policy.base import Policy

pytestmark = [
    pytest.mark.fpga,
    # The emulator's compiler says on success, too, what it did.
    pytest.mark.filterwarnings("ignore:Non-empty compiler output:UserWarning"),
]

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the binaries of all kernels, made by another process."""
    made = tmp_path_factory.mktemp("binaries")
    outcome(made, "save")
    return made


def outcome(folder: Path, mode: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.helpers.fpga_run", mode, str(folder)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert run.returncode == 0, run.stderr
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def test_every_kernel_runs_from_its_file(folder: Path) -> None:
    found = outcome(folder, "load")
    assert [row for row in found["rows"] if not row["ok"]] == []
    assert {row["task"] for row in found["rows"]} == {sample.task.name for sample in SAMPLES}
    assert {row["device"] for row in found["rows"]} == {"fpga:0"}
    assert all(row["samples"] == 2 for row in found["rows"])
    assert found["files"] == len(list(folder.iterdir())) > 0
    print(f"{len(found['kernels'])} kernels of {len(found['rows'])} tasks, {found['files']} files")


def test_a_file_that_is_missing_is_not_compiled_in_secret(tmp_path: Path) -> None:
    found = outcome(tmp_path, "load")
    assert not any(row["ok"] for row in found["rows"])
    assert all("FileNotFoundError" in row["error"] for row in found["rows"])


class Split(Policy):
    """Products and updates go to the FPGA, the rest to the CPU."""

    timed = True
    chains = False

    def place(self, node: Node, able: Sequence[int], by: int) -> int | None:
        kind = "fpga" if node.task in (gemm, syrk) else "cpu"
        return next(worker for worker in able if self.workers[worker].startswith(kind))


def test_a_graph_over_cpu_and_fpga(folder: Path) -> None:
    """A tiled Cholesky factorisation; the data follow the tasks to and fro."""
    a = random_matrix(96, "float64", 3)
    expected = np.linalg.cholesky(a)
    device_launch.use_binaries(folder)
    try:
        with lrt.Runtime(devices="cpu,fpga", policy=Split(), trace=True) as rt:
            submit_cholesky(lrt.tiles(a, 16))
            rt.wait(a)
            ran = {(rt.trace.devices[r.worker], r.task) for r in rt.trace}
    finally:
        device_launch.use_binaries(None)
    np.testing.assert_allclose(np.tril(a), expected, rtol=1e-10)
    assert ran == {("cpu", "potrf"), ("cpu", "trsm"), ("fpga:0", "gemm"), ("fpga:0", "syrk")}
