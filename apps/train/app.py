"""The command line: trains, tests, and says what it took."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import legato_rt as lrt

from .digits import load_digits
from .network import NETWORKS, Network
from .training import Trainer, evaluate, one_cycle

PEAK_RATE = {"small": 0.15, "large": 0.05}
"""Highest learning rate of each network, found by trial."""


@dataclass(frozen=True)
class Outcome:
    """A trained network, how it did on the test digits, and what it took.

    Attributes
    ----------
    step_s : float
        Median over the epochs of what a step took on average.
    """

    network: Network
    correct: int
    tested: int
    time_s: float
    step_s: float
    report: lrt.Report


def run(options: argparse.Namespace) -> Outcome:
    """Train and test as the command line says."""
    train, test = load_digits(options.seed)
    rng = np.random.default_rng(options.seed)
    network = Network(options.net, rng)
    trainer = Trainer(
        network, train, rng, options.batch, options.micro_batches, replay=options.replay
    )
    rates = one_cycle(options.epochs * trainer.steps, PEAK_RATE[options.net])
    print(
        f"network {options.net}: {network.parameters:,} parameters, {len(train):,} digits to learn "
        f"from, {len(test)} to test on, {trainer.steps} steps an epoch"
    )
    steps_s: list[float] = []
    start_s = time.perf_counter()
    with lrt.Runtime(**_runtime_options(options)) as rt:
        for epoch, of_epoch in enumerate(np.split(rates, options.epochs), 1):
            epoch_s = time.perf_counter()
            loss = trainer.epoch(of_epoch)
            steps_s.append((time.perf_counter() - epoch_s) / trainer.steps)
            print(f"epoch {epoch:3d} of {options.epochs}   loss {loss:.4f}", flush=True)
        hits = evaluate(network, test, options.batch)
        time_s = time.perf_counter() - start_s
        report = rt.report()
        if options.trace:
            rt.trace.save(options.trace)
    return Outcome(network, hits, len(test), time_s, statistics.median(steps_s), report)


def _runtime_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return what was asked of the runtime; it has its own defaults for the rest."""
    asked = {name: getattr(options, name) for name in ("workers", "devices", "policy", "executor")}
    given = {name: value for name, value in asked.items() if value is not None}
    return {**given, "reproducible": options.reproducible, "trace": bool(options.trace)}


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="train", description=__doc__)
    add = parser.add_argument
    add("--net", choices=sorted(NETWORKS, reverse=True), default="small", help="which network")
    add("--epochs", type=_positive, default=30, help="times each digit is learnt from")
    add("--batch", type=_positive, default=128, help="digits a step")
    add("--micro-batches", type=_positive, default=4, help="equal parts of a batch, in parallel")
    add("--seed", type=int, default=0, help="draws the split, the first weights and the order")
    add("--workers", type=_positive, help="how many tasks run at a time")
    add("--devices", help="names or kinds, separated by commas; `legato devices` lists them")
    add("--policy", help="who runs what; `legato policies` lists them")
    add("--executor", help="serial or threads")
    add("--reproducible", action="store_true", help="the same bits on any number of workers")
    add("--replay", action="store_true", help="capture a step's graph once and run it in each")
    add("--trace", default="train-trace.json", help="where to write the trace; '' for nowhere")
    options = parser.parse_args(argv)
    if options.batch % options.micro_batches:
        parser.error(f"{options.micro_batches} micro-batches do not divide {options.batch} digits")
    return options


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not a positive number")
    return number


def main(argv: Sequence[str] | None = None) -> int:
    """Run the application; return its exit code."""
    options = parse(argv)
    try:
        outcome = run(options)
    except (lrt.SettingError, lrt.PlacementError) as error:
        raise SystemExit(f"train: {error}") from None
    share = outcome.correct / outcome.tested
    print(f"\ntest accuracy {share:.2%} ({outcome.correct} of {outcome.tested})")
    print(f"time          {outcome.time_s:.1f} s, {outcome.step_s * 1e3:.2f} ms a step")
    print(outcome.report)
    if options.trace:
        print(f"trace         {options.trace}")
    return 0
