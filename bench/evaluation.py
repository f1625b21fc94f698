"""The common form of evaluations: rows with targets, a table, a JSON file, an exit code.

The file holds ``{"machine": {...}, "rows": [...]}``, and a row these keys:

========  =========================================================================
name      what was measured
value     the figure; for a comparison, the median of the ratios of paired runs
unit      its unit
target    what the figure is held against, or null where it only informs
better    ``lower`` or ``higher``
ok        whether the target is reached; true where there is none
n         how many samples the figure is the median of
spread    the lowest and the highest of them, or null
baseline  for a comparison, the other side's own figure, or null
========  =========================================================================

Ratios travel from machine to machine, times do not: compare contenders in one run, by turns.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rich.console import Console
from rich.table import Table

import legato_rt as lrt


class Span(NamedTuple):
    """How long something took: on the clock, and on all cores together."""

    wall_s: float
    cpu_s: float


Samples = dict[str, list[Span]]


@dataclass(frozen=True)
class Row:
    """One figure of an evaluation; the module says what the fields mean."""

    name: str
    value: float
    unit: str
    target: float | None = None
    better: Literal["lower", "higher"] = "lower"
    n: int = 1
    spread: tuple[float, float] | None = None
    baseline: float | None = None

    @property
    def ok(self) -> bool:
        """Whether the target is reached."""
        if self.target is None:
            return True
        if self.better == "lower":
            return self.value <= self.target
        return self.value >= self.target

    def as_json(self) -> dict[str, Any]:
        """The row as the file holds it."""
        return {**asdict(self), "ok": self.ok}


def figure(
    name: str,
    samples: Sequence[float],
    unit: str,
    *,
    target: float | None = None,
    better: Literal["lower", "higher"] = "lower",
    baseline: float | None = None,
) -> Row:
    """Make a row of the median of several samples."""
    spread = (min(samples), max(samples))
    value = statistics.median(samples)
    return Row(name, value, unit, target, better, len(samples), spread, baseline)


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Ratio of each sample to the other side's of the same turn."""
    return [a / b for a, b in zip(ours, theirs, strict=True)]


def timed(run: Callable[[], object]) -> Span:
    """What a call takes; what it returns is freed after the clock has stopped."""
    gc.collect()
    start_s, cpu_start_s = time.perf_counter(), time.process_time()
    kept = run()
    span = Span(time.perf_counter() - start_s, time.process_time() - cpu_start_s)
    del kept
    return span


def by_turns(contenders: Mapping[str, Callable[[], object]], repetitions: int) -> Samples:
    """Time every contender once a turn, each turn beginning with another one."""
    names = list(contenders)
    samples: Samples = {name: [] for name in names}
    for turn in range(repetitions):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            samples[name].append(timed(contenders[name]))
    return samples


def machine(*packages: str) -> dict[str, Any]:
    """What the figures depend on: hardware, interpreter, and versions of the named packages."""
    versions = {name: metadata.version(name) for name in packages}
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {"legato_rt": lrt.__version__, **versions},
        "load": os.getloadavg()[0],
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def parser(description: str | None, repetitions: int) -> argparse.ArgumentParser:
    """The options that every evaluation has."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--json", type=Path, metavar="FILE", help="write the figures here")
    made.add_argument("--repetitions", type=positive, default=repetitions, metavar="N")
    return made


def positive(text: str) -> int:
    """Read a whole number above zero."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above zero")
    return int(text)


def conclude(rows: Sequence[Row], facts: Mapping[str, Any], table: Table, path: Path | None) -> int:
    """Print the table and what missed its target, write the file, return the exit code."""
    console = Console(width=None if sys.stdout.isatty() else 130, highlight=False)
    console.print(table)
    if path is not None:
        _write(path, {"machine": dict(facts), "rows": [row.as_json() for row in rows]})
        console.print(f"figures in {path}", soft_wrap=True)
    missed = [row for row in rows if not row.ok]
    for row in missed:
        bound = "at most" if row.better == "lower" else "at least"
        console.print(
            f"missed: {row.name} is {row.value:.3g} {row.unit}, asked is {bound} {row.target:g}",
            style="bold red",
            soft_wrap=True,
        )
    return 1 if missed else 0


def _write(path: Path, document: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(
        "w", dir=path.parent, prefix=path.name, suffix=".part", delete=False, encoding="utf-8"
    ) as file:
        json.dump(document, file, indent=1, allow_nan=False)
        file.write("\n")
    os.replace(file.name, path)
