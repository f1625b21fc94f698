"""The evaluation of the devices, on a small scale: what it reads off a trace, and its rows."""

import argparse
import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import legato_rt as lrt
from legato_rt.backend import backends

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def bench() -> Iterator[Any]:
    """The benchmarks' modules, imported from the folder they lie in."""
    names = ("devices", "devices_overlap", "devices_gemm", "devices_streams", "devices_conv2d")
    sys.path.insert(0, str(ROOT))
    try:
        yield argparse.Namespace(**{n: importlib.import_module(f"bench.{n}") for n in names})
    finally:
        sys.path.remove(str(ROOT))


@pytest.fixture
def opencl() -> None:
    driver = backends()["opencl"]
    if not driver.discover():
        pytest.skip("; ".join(driver.problems()) or "there is no OpenCL device")


@pytest.mark.parametrize(
    ("spans", "by", "inside"),
    [
        ([(0, 10)], [], 0),
        ([(0, 10)], [(2, 4), (3, 6), (20, 30)], 4),
        ([(0, 10), (5, 15)], [(8, 12)], 6),
        ([(2, 3)], [(0, 10), (1, 2)], 1),
        ([], [(0, 10)], 0),
    ],
)
def test_covered(bench: Any, spans: Any, by: Any, inside: int) -> None:
    assert bench.devices_overlap.covered(spans, by) == inside


@pytest.mark.usefixtures("opencl")
def test_every_copy_of_the_pipeline_is_looked_at(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench.devices_overlap, "SIDE", 16)
    (row,) = bench.devices_overlap.rows(2)
    assert 0 <= row.spread[0] <= row.value <= row.spread[1] <= 1
    assert bench.devices_overlap.TASKS >= 40


@pytest.mark.usefixtures("opencl")
def test_products_are_compared(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.devices_gemm, "SIDE", 32)
    row, speed = bench.devices_gemm.rows(2)
    assert (row.target, row.better, row.n) == (3.0, "higher", 4)
    assert speed.value > 0
    assert speed.baseline > 0


def test_a_stream_keeps_to_its_device(bench: Any) -> None:
    c = np.zeros((2, 4, 4), np.float32)

    @lrt.task
    def touch(c: lrt.InOut[np.ndarray]) -> None:
        c += 1

    with lrt.Runtime(
        devices="cpu,null", workers=2, policy=bench.devices_streams.Apart(), trace=True
    ) as rt:
        for _ in range(4):
            touch.options(name="cpu").submit(c[0])
        lrt.wait(c)
        assert {rt.trace.devices[record.worker] for record in rt.trace} == {"cpu"}
    assert (c[0] == 4).all()


def test_without_pytorch_the_point_is_skipped_with_a_note(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (row,) = bench.devices_conv2d.rows(1)
    assert row.ok
    assert row.target is None
    assert "PyTorch is not installed: pip install" in row.name


def test_a_point_runs_in_a_process_without_variables_set_by_hand(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    module = tmp_path / "some_point.py"
    module.write_text(
        "import os\n"
        "from bench.evaluation import Row\n"
        "ENVIRONMENT = {'MINE': '5'}\n"
        "def rows(repetitions):\n"
        "    left = [n for n in ('OPENBLAS_CORETYPE', 'OPENBLAS_L2_SIZE') if n in os.environ]\n"
        "    return [Row('left', len(left), '', 0.0), Row('mine', int(os.environ['MINE']), '',\n"
        "            float(repetitions), 'higher', 2, (1.0, 2.0))]\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT}")
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(bench.devices, "POINTS", {"good": "some_point", "bad": "argparse"})
    path = tmp_path / "rows.json"
    assert bench.devices.main(["--repetitions", "4", "--json", str(path)]) == 1
    document = json.loads(path.read_text(encoding="utf-8"))
    rows = {row["name"]: row for row in document["rows"]}
    assert rows["left"]["ok"]
    assert (rows["mine"]["value"], rows["mine"]["spread"]) == (5, [1.0, 2.0])
    assert not rows["bad.measured"]["ok"]
    assert "has no attribute 'rows'" in capfd.readouterr().err
    assert "numpy" in document["machine"]["versions"]
