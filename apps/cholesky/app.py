"""The command line: factorises, holds the factor against SciPy's, and says what it took."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import legato_rt as lrt

from .factor import flops, random_matrix, submit_cholesky

ROUNDING = 50.0
"""Largest difference from SciPy's factor, in rounding errors of its largest element."""


@dataclass(frozen=True)
class Outcome:
    """The factor, how far it is from SciPy's, and what both took.

    Attributes
    ----------
    factor : array
        Lower triangular.
    error : float
        Largest difference from SciPy's factor, relative to its largest element.
    """

    factor: npt.NDArray[Any]
    error: float
    time_s: float
    scipy_s: float
    report: lrt.Report

    @property
    def ok(self) -> bool:
        """Whether the factor is right, but for rounding."""
        return self.error <= ROUNDING * float(np.finfo(self.factor.dtype).eps)


def run(options: argparse.Namespace) -> Outcome:
    """Factorise and check as the command line says."""
    matrix = random_matrix(options.n, options.dtype, options.seed)
    factor = matrix.copy()
    with lrt.Runtime(**_runtime_options(options)) as rt:
        tiles = lrt.tiles(factor, options.tile)
        start_s = time.perf_counter()
        submit_cholesky(tiles)
        lrt.wait(factor)
        time_s = time.perf_counter() - start_s
        report = rt.report()
        if options.trace:
            rt.trace.save(options.trace)
    start_s = time.perf_counter()
    expected = _scipy_cholesky(matrix)
    scipy_s = time.perf_counter() - start_s
    factor = np.tril(factor)
    error = float(np.abs(factor - expected).max() / np.abs(expected).max())
    return Outcome(factor, error, time_s, scipy_s, report)


def _runtime_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return what was asked of the runtime; it has its own defaults for the rest."""
    names = ("workers", "devices", "policy", "executor")
    given = {name: getattr(options, name) for name in names}
    return {**given, "reproducible": options.reproducible or None, "trace": bool(options.trace)}


def _scipy_cholesky(matrix: npt.NDArray[Any]) -> npt.NDArray[Any]:
    from scipy.linalg import cholesky

    expected: npt.NDArray[Any] = cholesky(matrix, lower=True, check_finite=False)
    return expected


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="cholesky", description=__doc__)
    add = parser.add_argument
    add("--n", type=_positive, default=2048, help="rows and columns of the matrix")
    add("--tile", type=_positive, default=256, help="rows and columns of a tile")
    add("--dtype", choices=("float64", "float32"), default="float64", help="precision")
    add("--seed", type=int, default=0, help="draws the matrix")
    add("--workers", type=_positive, help="how many tasks run at a time")
    add("--devices", help="names or kinds, separated by commas; `legato devices` lists them")
    add("--policy", help="who runs what; `legato policies` lists them")
    add("--executor", help="serial or threads")
    add("--reproducible", action="store_true", help="the same bits on any number of workers")
    add("--trace", default="", metavar="FILE", help="where to write the trace")
    return parser.parse_args(argv)


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
    except lrt.SettingError as error:
        print(f"cholesky: {error}", file=sys.stderr)
        return 2
    work = flops(options.n)
    print(f"matrix    {options.n} x {options.n} {options.dtype} in tiles of {options.tile}")
    print(f"max error {outcome.error:.2e} of the largest element, against scipy.linalg.cholesky")
    print(f"time      {outcome.time_s:.4f} s   {work / outcome.time_s / 1e9:.1f} GFLOP/s")
    print(f"SciPy     {outcome.scipy_s:.4f} s   {work / outcome.scipy_s / 1e9:.1f} GFLOP/s")
    print(outcome.report)
    if options.trace:
        print(f"trace     {options.trace}")
    if not outcome.ok:
        print("the factor is WRONG", file=sys.stderr)
    return 0 if outcome.ok else 1
