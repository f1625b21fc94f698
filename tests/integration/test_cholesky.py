"""The Cholesky application: right on every executor, policy, size and kind of device."""

import importlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import legato_rt as lrt
from legato_rt.policy import POLICIES

pytest.importorskip("scipy", reason="apps/cholesky checks its result with SciPy")

ROOT = Path(__file__).resolve().parents[2]
SMALL = ["--n", "150", "--tile", "32"]  # the last tile of a row is smaller


@pytest.fixture(scope="module")
def app() -> Iterator[Any]:
    """The application's module, imported from the folder it lies in."""
    sys.path.insert(0, str(ROOT))
    try:
        yield importlib.import_module("apps.cholesky.app")
    finally:
        sys.path.remove(str(ROOT))


def factorise(app: Any, *options: str) -> Any:
    return app.run(app.parse([*SMALL, *options]))


@pytest.fixture(scope="module")
def serial_factor(app: Any) -> bytes:
    factor: bytes = factorise(app, "--reproducible", "--executor", "serial").factor.tobytes()
    return factor


@pytest.mark.parametrize("policy", sorted(POLICIES))
@pytest.mark.parametrize("workers", ["1", "2", "8"])
def test_same_bits_on_threads(app: Any, serial_factor: bytes, workers: str, policy: str) -> None:
    outcome = factorise(app, "--reproducible", "--workers", workers, "--policy", policy)
    assert outcome.ok
    assert outcome.factor.tobytes() == serial_factor


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sizes", [("1", "1"), ("64", "64"), ("64", "100"), ("130", "16")])
def test_factor_is_right(app: Any, dtype: str, sizes: tuple[str, str]) -> None:
    outcome = factorise(app, "--n", sizes[0], "--tile", sizes[1], "--dtype", dtype)
    assert outcome.ok
    assert outcome.factor.dtype == dtype
    assert (outcome.factor == np.tril(outcome.factor)).all()
    tiles = -(-int(sizes[0]) // int(sizes[1]))
    assert outcome.report.tasks == tiles * (tiles + 1) * (tiles + 2) // 6
    assert {row.task for row in outcome.report.kinds} <= {"potrf", "trsm", "syrk", "gemm"}


@pytest.mark.parametrize("devices", ["simulated", "cpu,simulated"])
def test_other_devices(app: Any, serial_factor: bytes, devices: str) -> None:
    outcome = factorise(app, "--devices", devices, "--workers", "1")
    assert outcome.factor.tobytes() == serial_factor
    assert {row.device for row in outcome.report.kinds} <= set(devices.split(","))


def test_a_wrong_factor_is_found(app: Any) -> None:
    outcome = factorise(app)
    spoilt = app.Outcome(outcome.factor, 1e-9, outcome.time_s, outcome.scipy_s, outcome.report)
    assert outcome.ok
    assert not spoilt.ok


def test_a_matrix_that_has_no_factor_fails_with_the_kernel_named(app: Any) -> None:
    factor = importlib.import_module("apps.cholesky.factor")
    matrix = factor.random_matrix(64, "float64", 0)
    matrix[40, 40] = -1.0
    with pytest.raises(ExceptionGroup) as caught, lrt.Runtime(workers=2):
        factor.submit_cholesky(lrt.tiles(matrix, 16))
    (error,) = caught.value.exceptions
    assert isinstance(error, lrt.TaskError)
    assert error.task == "potrf"
    assert isinstance(error.__cause__, np.linalg.LinAlgError)


def test_command_line(tmp_path: Path) -> None:
    command = shutil.which("legato", path=str(Path(sys.executable).parent))
    assert command is not None
    trace = tmp_path / "trace.json"
    run = subprocess.run(
        [command, "run", str(ROOT / "apps/cholesky"), *SMALL, "--trace", str(trace)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (run.returncode, run.stderr) == (0, "")
    for expected in ("max error", "GFLOP/s", "35 tasks in", "(modelled)", str(trace)):
        assert expected in run.stdout
    records = json.loads(trace.read_text(encoding="utf-8"))["records"]
    assert len(records) == 35


@pytest.mark.parametrize("wrong", [["--n", "0"], ["--dtype", "int"], ["--policy", "none"]])
def test_a_wrong_command_line(app: Any, wrong: list[str], capsys: Any) -> None:
    try:
        code = app.main([*SMALL, *wrong])
    except SystemExit as error:
        code = error.code
    assert code == 2
    assert "cholesky: " in capsys.readouterr().err
