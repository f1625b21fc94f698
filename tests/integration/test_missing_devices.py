"""`legato devices` where a package, a driver or a platform is missing: what it says to do."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from legato_rt.devices import icd

# Runs the command where some modules cannot be imported.
WITHOUT = """
import sys
for name in {modules!r}:
    sys.modules[name] = None
from legato_rt.cli import main
main(["devices", "--json"])
"""


def devices(*modules: str, **variables: str) -> dict[str, Any]:
    """What ``legato devices --json`` prints in a process that lacks some modules."""
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT.format(modules=modules)],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def kinds(found: dict[str, Any]) -> set[str]:
    return {device["kind"] for device in found["devices"]}


def said(found: dict[str, Any], kind: str) -> str:
    return "\n".join(found["problems"][kind])


def test_without_pyopencl() -> None:
    found = devices("pyopencl")
    assert "cpu" in kinds(found)
    assert not {"opencl", "fpga"} & kinds(found)
    for kind in ("opencl", "fpga"):
        assert "pip install 'legato_rt[opencl]'" in said(found, kind)


def test_without_a_platform(tmp_path: Path) -> None:
    """PyOpenCL as it is, but for the files that tell its loader of PoCL and others."""
    spec = importlib.util.find_spec("pyopencl")
    if spec is None or spec.origin is None:
        pytest.skip("PyOpenCL is not installed")
    if any(icd.SYSTEM.glob("*.icd")):
        pytest.skip("this machine has OpenCL drivers of its own")
    shutil.copytree(
        Path(spec.origin).parent,
        tmp_path / "pyopencl",
        copy_function=link_or_copy,
        ignore=shutil.ignore_patterns("*.icd", "__pycache__"),
    )
    empty = tmp_path / "vendors"
    empty.mkdir()
    path = os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))
    found = devices(PYTHONPATH=path, OCL_ICD_VENDORS=str(empty))
    assert not {"opencl", "fpga"} & kinds(found)
    text = said(found, "opencl")
    assert "no OpenCL platform" in text
    assert "PoCL" in text
    assert ".icd" in text


def link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def test_without_the_emulator() -> None:
    if icd.emulator() is not None:
        pytest.skip("the emulator is installed")
    pytest.importorskip("pyopencl")
    text = said(devices(), "fpga")
    assert "pip install 'legato_rt[fpga-emu]'" in text
    assert "LEGATO_RT_FPGA" in text


@pytest.mark.fpga
def test_with_an_emulator_that_the_loader_is_kept_from(tmp_path: Path) -> None:
    found = devices(OCL_ICD_VENDORS=str(tmp_path))
    assert "fpga" not in kinds(found)
    assert str(icd.emulator()) in said(found, "fpga")
    assert "OCL_ICD_VENDORS" in said(found, "fpga")


def test_without_cupy_and_without_a_driver() -> None:
    found = devices("cupy", CUDA_VISIBLE_DEVICES="")
    assert "cuda" not in kinds(found)
    text = said(found, "cuda")
    assert "pip install 'legato_rt[cuda]'" in text
    assert "driver" in text


def test_every_problem_names_a_remedy() -> None:
    found = devices("pyopencl", "cupy", CUDA_VISIBLE_DEVICES="")
    for kind, texts in found["problems"].items():
        for text in texts:
            assert any(word in text for word in ("install", "must", "unset")), (kind, text)
