"""Point 8: how fast whole graphs are planned, and whether the plans are those of HEFT.

The published makespans are those of two other planners on the same graphs: anrg-saga 2.0.2 and a
public one on networkx, which agree to the digits given.
"""

from __future__ import annotations

import functools
import math

from bench.evaluation import Row, figure, timed
from bench.layered import layered, plain_heft, plan

PUBLISHED_S = {100: 82.43, 1_000: 724.74, 10_000: 7304.25}
OTHERS_US = 10_899.0
"""Microseconds a task at 10,000 tasks of the faster of those planners."""

SIZES = (10_000, 100_000, 1_000_000)
SECONDS = 5.0
"""At most, for a million tasks on four processors, after compilation."""

GROWTH = 1.15
"""At most, of the exponent of the number of tasks; one would be linear."""

SMALL = 60
REPETITIONS = 3


def rows() -> list[Row]:
    """Times, growth and makespans; the growth is that of processor time."""
    return [*_times(), *_makespans(), _small()]


def _times() -> list[Row]:
    first = layered(100)
    plan(first.dag(), first.seconds())  # compiles
    made: list[Row] = []
    best: list[float] = []
    for size in SIZES:
        instance = layered(size)
        dag, seconds = instance.dag(), instance.seconds()
        run = functools.partial(plan, dag, seconds)
        samples = [timed(run) for _ in range(REPETITIONS)]
        best.append(min(span.cpu_s for span in samples))
        target = SECONDS if size == SIZES[-1] else None
        walls = [span.wall_s for span in samples]
        made.append(figure(f"planner.heft.{size}", walls, "s", target=target))
    per_task = best[0] / SIZES[0] * 1e6
    made.append(Row(f"planner.heft.{SIZES[0]}.task", per_task, "us/task", baseline=OTHERS_US))
    growth = math.log(best[-1] / best[0]) / math.log(SIZES[-1] / SIZES[0])
    made.append(Row("planner.growth", growth, "exponent", GROWTH))
    return made


def _makespans() -> list[Row]:
    """Differences to the published makespans, at most what their rounding hides."""
    made = []
    for size, published in PUBLISHED_S.items():
        instance = layered(size)
        makespan_s = plan(instance.dag(), instance.seconds()).makespan_s
        name = f"planner.published.{size}"
        made.append(Row(name, abs(makespan_s - published), "s off", 0.005, baseline=published))
    return made


def _small() -> Row:
    """The largest relative difference to plain Python, over small graphs."""
    worst = 0.0
    for seed in range(SMALL):
        instance = layered(10 + 5 * seed, seed)
        ours = plan(instance.dag(), instance.seconds()).makespan_s
        worst = max(worst, abs(ours / plain_heft(instance) - 1))
    return Row("planner.plain_python", worst, "relative", 1e-12, n=SMALL)
