"""What do the devices' drivers and kernels give?  Each point runs in a process of its own.

The variables that choose OpenBLAS's kernels by hand are left out there: they may name slow ones.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module, metadata
from typing import Any

from rich.table import Table

from bench.evaluation import Row, conclude, machine, parser

POINTS = {
    "overlap": "bench.devices_overlap",
    "streams": "bench.devices_streams",
    "gemm": "bench.devices_gemm",
    "conv2d": "bench.devices_conv2d",
}
"""The module of each point, in the order they are printed.

Each has a function `rows`, and may have variables for its process in `ENVIRONMENT`.
"""

BY_HAND = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
CHILD = """
import dataclasses, importlib, json, sys
rows = importlib.import_module(sys.argv[1]).rows(int(sys.argv[2]))
print(json.dumps([dataclasses.asdict(row) for row in rows]))
"""


def measure(point: str, repetitions: int) -> list[Row]:
    """The rows of a point.

    Raises
    ------
    RuntimeError
        If its process fails, with what it said.
    """
    module = POINTS[point]
    extra: Mapping[str, str] = getattr(import_module(module), "ENVIRONMENT", {})
    inherited = {name: value for name, value in os.environ.items() if name not in BY_HAND}
    command = [sys.executable, "-c", CHILD, module, str(repetitions)]
    run = subprocess.run(command, env={**inherited, **extra}, capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(f"{point} failed:\n{run.stderr}")
    return [_row(found) for found in json.loads(run.stdout.splitlines()[-1])]


def _row(found: dict[str, Any]) -> Row:
    spread = found.pop("spread")
    return Row(**found, spread=None if spread is None else (spread[0], spread[1]))


def table_of(rows: Sequence[Row]) -> Table:
    """All figures beside their targets."""
    table = Table(title="Devices")
    table.add_column("figure")
    for heading in ("value", "unit", "at least", "n", "lowest", "highest", "beside"):
        table.add_column(heading, justify="right")
    for row in rows:
        style = "" if row.target is None else "green" if row.ok else "bold red"
        value = f"{row.value:.3g}"
        bounds = ("", "") if row.spread is None else tuple(f"{end:.3g}" for end in row.spread)
        table.add_row(
            row.name,
            f"[{style}]{value}[/]" if style else value,
            row.unit,
            "" if row.target is None else f"{row.target:g}",
            str(row.n),
            *bounds,
            "" if row.baseline is None else f"{row.baseline:.3g}",
        )
    return table


def facts() -> dict[str, Any]:
    """What the figures depend on."""
    there = {entry.name for entry in metadata.distributions()}
    names = ("numpy", "scipy", "pyopencl", "pocl-binary-distribution", "torch")
    return machine(*(n for n in names if n in there or n.replace("-", "_") in there))


def main(argv: Sequence[str] | None = None) -> int:
    """Measure as the command line says; return the exit code."""
    options_parser = parser(__doc__, repetitions=7)
    options_parser.add_argument("--points", nargs="+", choices=POINTS, default=list(POINTS))
    options = options_parser.parse_args(argv)
    about = facts()
    rows: list[Row] = []
    for point in options.points:
        try:
            rows += measure(point, options.repetitions)
        except RuntimeError as error:
            print(error, file=sys.stderr)
            rows.append(Row(f"{point}.measured", 0.0, "", 1.0, "higher"))
    return conclude(rows, about, table_of(rows), options.json)


if __name__ == "__main__":
    raise SystemExit(main())
