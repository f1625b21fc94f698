"""The digits application: it learns, and its weights do not depend on how it was run."""

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import legato_rt as lrt
from legato_rt.kernels.collect import collect

pytest.importorskip("sklearn", reason="apps/train needs scikit-learn")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def app() -> Iterator[Any]:
    """The application's module, imported from the folder it lies in."""
    sys.path.insert(0, str(ROOT))
    try:
        yield importlib.import_module("apps.train.app")
    finally:
        sys.path.remove(str(ROOT))


def train(app: Any, *options: str) -> Any:
    return app.run(app.parse(["--trace", "", *options]))


def weights_after_an_epoch(app: Any, *options: str) -> bytes:
    outcome = train(app, "--epochs", "1", "--reproducible", *options)
    return b"".join(block.all.tobytes() for block in outcome.network.weights.values())


@pytest.fixture(scope="module")
def serial_weights(app: Any) -> bytes:
    return weights_after_an_epoch(app, "--executor", "serial")


@pytest.mark.parametrize("policy", ["fifo", "steal"])
@pytest.mark.parametrize("workers", [1, 2, 8])
def test_same_bits_on_threads(app: Any, serial_weights: bytes, workers: int, policy: str) -> None:
    options = ["--executor", "threads", "--workers", str(workers), "--policy", policy]
    assert weights_after_an_epoch(app, *options) == serial_weights


@pytest.mark.parametrize("policy", ["fifo", "steal"])
def test_same_bits_on_serial(app: Any, serial_weights: bytes, policy: str) -> None:
    options = ["--executor", "serial", "--policy", policy]
    assert weights_after_an_epoch(app, *options) == serial_weights


def test_seed_matters(app: Any, serial_weights: bytes) -> None:
    assert weights_after_an_epoch(app, "--executor", "serial", "--seed", "1") != serial_weights


def test_micro_batches_do_not_change_a_step(app: Any) -> None:
    """Five of them, whose tree is uneven, move the weights as the batch in one piece does."""
    training = importlib.import_module("apps.train.training")
    network = importlib.import_module("apps.train.network")
    digits = importlib.import_module("apps.train.digits")
    data, _ = digits.load_digits(0)
    order, corners = np.arange(60), np.ones((60, 2), np.intp)
    moved = []
    for micro_batches in (1, 5):
        net = network.Network("small", np.random.default_rng(0))
        trainer = training.Trainer(net, data, np.random.default_rng(1), 30, micro_batches)
        with lrt.Runtime(workers=2):
            trainer.step(order, corners, 30, 0.1)
            total = trainer.take_loss()
        moved.append((total, [block.all for block in net.weights.values()]))
    (one, whole), (other, parts) = moved
    assert one == pytest.approx(other, rel=1e-5)
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


@pytest.mark.parametrize("net", ["small", "large"])
def test_learns_in_two_epochs(app: Any, net: str) -> None:
    outcome = train(app, "--epochs", "2", "--net", net, "--batch", "64")
    assert outcome.tested == 360
    assert outcome.correct > 0.8 * outcome.tested


@pytest.mark.slow
def test_mean_accuracy_over_five_seeds(app: Any) -> None:
    outcomes = [train(app, "--seed", str(seed)) for seed in range(5)]
    assert np.mean([outcome.correct / outcome.tested for outcome in outcomes]) >= 0.98


def test_split_is_stratified_and_drawn_by_the_seed(app: Any) -> None:
    digits = importlib.import_module("apps.train.digits")
    (train_0, test_0), (_, again), (_, test_1) = map(digits.load_digits, (0, 0, 1))
    assert len(train_0) == 1437
    assert len(test_0) == 360
    np.testing.assert_array_equal(test_0.images, again.images)
    assert not np.array_equal(test_0.classes, test_1.classes)
    whole = np.bincount(train_0.classes) + np.bincount(test_0.classes)
    assert np.abs(np.bincount(test_0.classes) - whole / 5).max() < 1


@pytest.mark.parametrize("options", [[], ["--executor", "serial"], ["--trace", "{tmp}/t.json"]])
def test_same_bits_by_replay(
    app: Any, serial_weights: bytes, options: list[str], tmp_path: Path
) -> None:
    options = [option.format(tmp=tmp_path) for option in options]
    assert weights_after_an_epoch(app, "--replay", *options) == serial_weights


def test_moved_digits_are_cut_out_whole(app: Any) -> None:
    digits = importlib.import_module("apps.train.digits")
    image = np.arange(1, 65, dtype=np.float32).reshape(1, 8, 8, 1)
    corners = np.array([[1, 1], [0, 1], [1, 2]])
    out, labels = np.empty((3, 8, 8, 1), np.float32), np.empty(3, np.intp)
    margined, classes = digits.with_margin(image), np.array([7])
    collect(margined, classes, np.zeros(3, np.intp), corners, out, labels)
    np.testing.assert_array_equal(labels, 7)
    np.testing.assert_array_equal(out[0], image[0])
    np.testing.assert_array_equal(out[1, 1:], image[0, :-1])
    np.testing.assert_array_equal(out[1, 0], 0)
    np.testing.assert_array_equal(out[2, :, :-1], image[0, :, 1:])
    np.testing.assert_array_equal(out[2, :, -1], 0)


def test_command_prints_its_summary(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    command = [sys.executable, "-m", "apps.train", "--epochs", "1", "--trace", str(trace)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    for expected in ("test accuracy", "time", "conv2d_weight_grad", "modelled", str(trace)):
        assert expected in run.stdout
    assert trace.stat().st_size > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--micro-batches", "3"], "do not divide 128"), (["--epochs", "0"], "not a positive")],
)
def test_command_refuses_numbers(
    app: Any, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        app.parse(options)
    assert refused.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--policy", "--executor"])
def test_command_refuses_names_that_the_runtime_does_not_know(app: Any, option: str) -> None:
    with pytest.raises(SystemExit, match="nonsense"):
        app.main(["--trace", "", option, "nonsense"])
