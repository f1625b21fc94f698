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

from rich.table import Table

from bench.evaluation import (
    Row,
    Samples,
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


def measure(runners: Mapping[str, Runner], pattern: Pattern, repetitions: int) -> Samples:
    """Microseconds a task of every system, one sample a turn."""
    calls = {name: functools.partial(run, pattern, empty) for name, run in runners.items()}
    times = by_turns(calls, repetitions)
    return {name: [s / len(pattern) * 1e6 for s in samples] for name, samples in times.items()}


def rows_of(pattern: str, samples: Samples) -> list[Row]:
    """The figures of one pattern: both comparisons, then each system's own time."""
    ours = samples[OURS]
    rows = []
    for other, key, target in ((POOL, "thread_pool", TARGET), (DASK, "dask", None)):
        theirs = samples[other]
        rows.append(
            figure(
                f"{pattern}.by_{key}",
                ratios(ours, theirs),
                f"x {other}",
                target=target,
                baseline=statistics.median(theirs),
            )
        )
    return rows + [figure(f"{pattern}.{name}", of, "us/task") for name, of in samples.items()]


def table_of(results: Mapping[str, tuple[int, Samples]]) -> Table:
    """Microseconds a task, and the ratio that has a target with its spread."""
    table = Table(title=f"µs per empty task, and ratio to {POOL} (at most {TARGET:g})")
    table.add_column("pattern")
    for heading in ("tasks", *SYSTEMS, "ratio", "lowest", "highest", "to dask"):
        table.add_column(heading, justify="right")
    for name, (tasks, samples) in results.items():
        by_pool, by_dask, *_ = rows_of(name, samples)
        low, high = by_pool.spread or (by_pool.value, by_pool.value)
        style = "green" if by_pool.ok else "bold red"
        table.add_row(
            name,
            f"{tasks:,}",
            *(f"{statistics.median(samples[system]):.2f}" for system in SYSTEMS),
            f"[{style}]{by_pool.value:.3f}[/]",
            f"{low:.3f}",
            f"{high:.3f}",
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
    results: dict[str, tuple[int, Samples]] = {}
    with contextlib.ExitStack() as stack:
        opened = {
            name: stack.enter_context(open_(options.workers)) for name, open_ in SYSTEMS.items()
        }
        verify(opened)
        for name in options.patterns:
            pattern = PATTERNS[name](options.tasks)
            results[name] = len(pattern), measure(opened, pattern, options.repetitions)
    rows = [row for name, (_, samples) in results.items() for row in rows_of(name, samples)]
    return conclude(rows, facts, table_of(results), options.json)


if __name__ == "__main__":
    raise SystemExit(main())
