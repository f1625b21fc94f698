"""How good are the schedules?  Public measurements, published references, lower bounds.

Every point is a module with a function `rows`.  Points whose measurements are not there say where
those are published, and fail.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from rich.table import Table

from bench.evaluation import Row, conclude, machine, parser
from bench.schedule_data import MissingData

POINTS = {
    "resources": "bench.schedules_resources",
    "power": "bench.schedules_power",
    "vision": "bench.schedules_vision",
    "planner": "bench.schedules_planner",
}
"""The module of each point, in the order they are printed."""


def table_of(rows: Sequence[Row]) -> Table:
    """All figures beside their targets and references."""
    table = Table(title="Schedules")
    table.add_column("figure")
    for heading in ("value", "unit", "asked", "n", "reference"):
        table.add_column(heading, justify="right")
    for row in rows:
        style = "" if row.target is None else "green" if row.ok else "bold red"
        asked = (
            "" if row.target is None else f"{'≤' if row.better == 'lower' else '≥'} {row.target:g}"
        )
        reference = "" if row.baseline is None else f"{row.baseline:.4g}"
        value = f"{row.value:.4g}"
        table.add_row(
            row.name, f"[{style}]{value}[/]" if style else value, row.unit, asked,
            str(row.n), reference,
        )  # fmt: skip
    return table


def main(argv: Sequence[str] | None = None) -> int:
    """Evaluate as the command line says; return the exit code."""
    options_parser = parser(__doc__, repetitions=1)
    options_parser.add_argument("--points", nargs="+", choices=POINTS, default=list(POINTS))
    options = options_parser.parse_args(argv)
    facts = machine("numba", "numpy")
    rows: list[Row] = []
    for point in options.points:
        try:
            rows += importlib.import_module(POINTS[point]).rows()
        except MissingData as error:
            print(f"{point}: {error}", file=sys.stderr)
            rows.append(Row(f"{point}.data", 0.0, "there", 1.0, "higher"))
    return conclude(rows, facts, table_of(rows), options.json)


if __name__ == "__main__":
    raise SystemExit(main())
