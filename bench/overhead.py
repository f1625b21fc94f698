"""What does a task cost?  Empty bodies, dependences from futures, beside what others charge.

Every system is verified first, with bodies whose value depends on the order of their inputs.  Then
they take turns, and each turn's times are compared with those of the same turn.
"""

from __future__ import annotations

import contextlib
import functools
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from bench.evaluation import (
    Row,
    by_turns,
    conclude,
    figure,
    machine,
    parser,
    positive,
    ratios,
)
from bench.patterns import PATTERNS, Pattern
from bench.systems import SYSTEMS, Runner, empty, mixed, plain

OURS, POOL, DASK = SYSTEMS
TARGET = 2.0
"""The cost of a task, at most, in the cost of ThreadPoolExecutor's."""

VERIFIED_TASKS = 200


def verify(runners: Mapping[str, Runner]) -> None:
    """Hold every system's values against those of a plain loop.

    Raises
    ------
    SystemExit
        If one differs: nothing it does is worth timing.
    """
    for make in PATTERNS.values():
        pattern = make(VERIFIED_TASKS)
        right = plain(pattern, mixed).values
        for name, run in runners.items():
            if run(pattern, mixed).values != right:
                sys.exit(f"{name} computes wrong values on the pattern {pattern.name}")


@dataclass(frozen=True)
class Costs:
    """Microseconds a task, one sample a turn, of every system."""

    tasks: int
    wall: dict[str, list[float]]
    cpu: dict[str, list[float]]

    def to(self, other: str, clock: str = "wall") -> list[float]:
        """Ratios of our costs to another system's."""
        costs: dict[str, list[float]] = getattr(self, clock)
        return ratios(costs[OURS], costs[other])


def measure(runners: Mapping[str, Runner], pattern: Pattern, repetitions: int) -> Costs:
    """Let every system run a pattern by turns."""
    calls = {name: functools.partial(run, pattern, empty) for name, run in runners.items()}
    samples = by_turns(calls, repetitions)
    scale = 1e6 / len(pattern)
    return Costs(
        len(pattern),
        {name: [span.wall_s * scale for span in spans] for name, spans in samples.items()},
        {name: [span.cpu_s * scale for span in spans] for name, spans in samples.items()},
    )


def rows_of(pattern: str, costs: Costs) -> list[Row]:
    """The figures of one pattern: the comparisons, then each system's own costs."""

    def compared(name: str, other: str, clock: str, target: float | None = None) -> Row:
        baseline = statistics.median(getattr(costs, clock)[other])
        unit = f"x {other}"
        samples = costs.to(other, clock)
        return figure(f"{pattern}.{name}", samples, unit, target=target, baseline=baseline)

    rows = [
        compared("by_thread_pool", POOL, "wall", TARGET),
        compared("by_dask", DASK, "wall"),
        compared("cpu_by_thread_pool", POOL, "cpu"),
    ]
    rows += [figure(f"{pattern}.{name}", of, "us/task") for name, of in costs.wall.items()]
    return rows + [
        figure(f"{pattern}.{name}.cpu", of, "core-us/task") for name, of in costs.cpu.items()
    ]


def table_of(results: Mapping[str, Costs]) -> Table:
    """Microseconds a task, and the ratio that has a target with its spread."""
    table = Table(
        title=f"µs per empty task, and ratio to {POOL} (at most {TARGET:g})",
        caption="cpu: the same ratio in processor time, which other load hardly changes",
    )
    table.add_column("pattern")
    for heading in ("tasks", *SYSTEMS, "ratio", "lowest", "highest", "cpu", "to dask"):
        table.add_column(heading, justify="right")
    for name, costs in results.items():
        by_pool, by_dask, cpu, *_ = rows_of(name, costs)
        low, high = by_pool.spread or (by_pool.value, by_pool.value)
        style = "green" if by_pool.ok else "bold red"
        table.add_row(
            name,
            f"{costs.tasks:,}",
            *(f"{statistics.median(costs.wall[system]):.2f}" for system in SYSTEMS),
            f"[{style}]{by_pool.value:.3f}[/]",
            f"{low:.3f}",
            f"{high:.3f}",
            f"{cpu.value:.3f}",
            f"{by_dask.value:.3f}",
        )
    return table


def main(argv: Sequence[str] | None = None) -> int:
    """Measure as the command line says; return the exit code."""
    options_parser = parser(__doc__, repetitions=7)
    options_parser.add_argument("--tasks", type=positive, default=10_000, help="in each pattern")
    options_parser.add_argument("--workers", type=positive, default=2)
    options_parser.add_argument("--patterns", nargs="+", choices=PATTERNS, default=list(PATTERNS))
    options = options_parser.parse_args(argv)
    facts = machine("dask", "numpy")
    results: dict[str, Costs] = {}
    with contextlib.ExitStack() as stack:
        opened = {
            name: stack.enter_context(open_(options.workers)) for name, open_ in SYSTEMS.items()
        }
        verify(opened)
        for name in options.patterns:
            pattern = PATTERNS[name](options.tasks)
            results[name] = measure(opened, pattern, options.repetitions)
    rows = [row for name, costs in results.items() for row in rows_of(name, costs)]
    return conclude(rows, facts, table_of(results), options.json)


if __name__ == "__main__":
    raise SystemExit(main())
