"""Point 2: projects whose tasks share limited resources, beside their shortest known makespans.

The deviation of one is the percentage by which our makespan is above it.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from bench.evaluation import Row
from bench.schedule_data import projects
from legato_rt import formats, order

ONE_PASS, HUNDRED_PASSES = 4.3, 1.3
"""Mean deviation in percent, at most."""

PASSES = 100


@dataclass(frozen=True)
class Outcome:
    """What came of one project."""

    percent: float
    passes: int
    broken: int


def rows() -> list[Row]:
    """Mean deviations, how many are optimal, and how often a limit was broken."""
    instances = list(projects())
    single = [_outcome(graph, best, 1) for graph, best in instances]
    many = [_outcome(graph, best, PASSES) for graph, best in instances]
    most = max(outcome.passes for outcome in many)
    broken = sum(outcome.broken for outcome in single + many)
    return [
        *_rows("resources.one_pass", single, ONE_PASS),
        *_rows("resources.hundred_passes", many, HUNDRED_PASSES),
        Row("resources.hundred_passes.most", most, "passes", PASSES),
        Row("resources.broken_limits", broken, "", 0),
    ]


def _rows(name: str, outcomes: Sequence[Outcome], target: float) -> list[Row]:
    deviations = [outcome.percent for outcome in outcomes]
    spread = min(deviations), max(deviations)
    mean = statistics.fmean(deviations)
    optimal = sum(percent < 1e-9 for percent in deviations)
    return [
        Row(name, mean, "% above best", target, n=len(outcomes), spread=spread),
        Row(f"{name}.optimal", optimal, "projects", n=len(outcomes)),
    ]


def _outcome(graph: formats.GraphRecord, best: int, passes: int) -> Outcome:
    dag = graph.dag()
    seconds = [task.seconds["cpu"] for task in graph.tasks]
    demands, capacities = graph.demands()
    table = order.timetable(dag, seconds, demands, capacities, passes=passes)
    broken = sum(1 for _ in order.broken_limits(dag, table, demands, capacities))
    return Outcome(100 * (table.makespan_s / best - 1), table.passes, broken)
