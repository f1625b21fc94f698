"""Point 3: six training jobs, each on a GPU of its own, share one power budget.

The jobs are the Zeus paper's, at their default batch sizes.  A job is worth its speed relative to
its own at the highest cap, and draws its average power.  The budget is a part of what all of them
draw at the highest cap.  The optimum is found by trying every combination.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.evaluation import Row
from bench.schedule_data import State, training
from legato_rt import powerbudget

JOBS = (
    ("cifar100", "shufflenetv2", 1024, "adadelta"),
    ("imagenet", "resnet50", 256, "adadelta"),
    ("librispeech", "deepspeech2", 192, "adamw"),
    ("movielens-1m", "ncf", 1024, "adam"),
    ("squad", "bert_base_uncased", 32, "adamw"),
    ("sentiment140", "bert_base_uncased", 128, "adamw"),
)
CASES = (("a40", 0.6), ("a40", 0.7), ("a40", 0.8), ("v100", 0.8), ("v100", 0.9))
SHARE = 0.99
"""At least, of the optimum."""

Jobs = list[list[powerbudget.Setting]]


def rows() -> list[Row]:
    """For each case the share of the optimum, and the watts beside the budget."""
    made = []
    for gpu, part in CASES:
        states = [training(gpu)[job] for job in JOBS]
        budget_w = part * sum(caps[max(caps)].watts for caps in states)
        jobs = [_settings(caps) for caps in states]
        chosen = powerbudget.allocate(jobs, budget_w)
        ours, drawn_w = _sums(jobs, chosen)
        best = _exhaustive(jobs, budget_w)
        name = f"power.{gpu}.{budget_w:.0f}W"
        made += [
            Row(f"{name}.speed", ours / best, "of optimum", SHARE, "higher", baseline=best),
            Row(f"{name}.watts", drawn_w, "W", budget_w),
            Row(f"{name}.uniform", _uniform(states, budget_w) / best, "of optimum"),
        ]
    return made


def _settings(caps: dict[int, State]) -> list[powerbudget.Setting]:
    full_s = caps[max(caps)].seconds
    return [
        powerbudget.Setting(full_s / caps[cap].seconds, caps[cap].watts) for cap in sorted(caps)
    ]


def _sums(jobs: Jobs, chosen: Sequence[int]) -> tuple[float, float]:
    settings = [job[index] for job, index in zip(jobs, chosen, strict=True)]
    return sum(s.value for s in settings), sum(s.watts for s in settings)


def _exhaustive(jobs: Jobs, budget_w: float) -> float:
    """The most value of all combinations within the budget."""
    values, watts = np.zeros(1), np.zeros(1)
    for job in jobs:
        values = np.add.outer(values, [setting.value for setting in job]).ravel()
        watts = np.add.outer(watts, [setting.watts for setting in job]).ravel()
    return float(values[watts <= budget_w].max())


def _uniform(states: list[dict[int, State]], budget_w: float) -> float:
    """The value of the highest cap that all jobs can have at once."""
    common = set.intersection(*(set(caps) for caps in states))
    fitting = [cap for cap in common if sum(caps[cap].watts for caps in states) <= budget_w]
    return sum(caps[max(caps)].seconds / caps[max(fitting)].seconds for caps in states)
