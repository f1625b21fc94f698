"""The applications on OpenCL devices, and on an FPGA where there is one, agree with the CPU."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import legato_rt as lrt
from legato_rt.backend import backends

ROOT = Path(__file__).resolve().parents[2]
RTOL = 1e-3
"""After a few steps: each kernel keeps to 1e-5, and what they differ by is learnt from."""

pytestmark = [
    # Intel's compiler says on success, too, what it did.
    pytest.mark.filterwarnings("ignore:Non-empty compiler output"),
]
FPGA = pytest.param("fpga", marks=pytest.mark.fpga)
DEVICES = pytest.mark.parametrize("devices", ["opencl", "cpu,opencl", FPGA])


@pytest.fixture(autouse=True)
def on_path(devices: str) -> Iterator[None]:
    """Applications are imported from the folder they lie in; skip where a device is missing."""
    driver = backends()[devices.rpartition(",")[2]]
    if not driver.discover():
        pytest.skip("; ".join(driver.problems()) or f"there is no device of kind {driver.kind}")
    sys.path.insert(0, str(ROOT))
    yield
    sys.path.remove(str(ROOT))


def kinds(report: lrt.Report) -> set[str]:
    return {row.device.partition(":")[0] for row in report.kinds}


@DEVICES
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cholesky(devices: str, dtype: str) -> None:
    app = importlib.import_module("apps.cholesky.app")
    sizes = ["--n", "150", "--tile", "32", "--dtype", dtype]
    outcome = app.run(app.parse([*sizes, "--devices", devices]))
    assert outcome.ok
    assert kinds(outcome.report) <= set(devices.split(","))
    expected = app.run(app.parse([*sizes, "--devices", "cpu"])).factor
    rtol = 1e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(outcome.factor, expected, rtol=0, atol=rtol * expected.max())


def steps(devices: str, count: int) -> tuple[float, int, dict[int, Any], lrt.Report]:
    """Train a few steps on part of the digits, and test on some."""
    training = importlib.import_module("apps.train.training")
    network = importlib.import_module("apps.train.network")
    digits = importlib.import_module("apps.train.digits")
    data, test = digits.load_digits(0)
    part = digits.Digits(data.images[: 64 * count], data.classes[: 64 * count])
    net = network.Network("small", np.random.default_rng(0))
    trainer = training.Trainer(net, part, np.random.default_rng(1), 64, 4)
    with lrt.Runtime(devices=devices, workers=2 if "cpu" in devices else None) as rt:
        loss = trainer.epoch(np.full(count, 0.02))
        few = digits.Digits(test.images[:50], test.classes[:50])
        hits = training.evaluate(net, few, 30)
        report = rt.report()
    return loss, hits, {i: block.all for i, block in net.weights.items()}, report


@DEVICES
def test_training(devices: str) -> None:
    """Every task of it runs on the device alone, if need be."""
    pytest.importorskip("sklearn", reason="apps/train needs scikit-learn")
    expected_loss, expected_hits, expected, _ = steps("cpu", 3)
    loss, hits, weights, report = steps(devices, 3)
    assert kinds(report) <= set(devices.split(","))
    assert {row.task for row in report.kinds} >= {"collect", "conv2d", "axpy", "sgd", "maxpool"}
    assert loss == pytest.approx(expected_loss, rel=RTOL)
    assert abs(hits - expected_hits) <= 1
    for i, block in weights.items():
        scale = np.abs(expected[i]).max()
        np.testing.assert_allclose(block, expected[i], rtol=0, atol=RTOL * scale)
