"""Sharing a power budget: the best choice, never more watts."""

import itertools
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import legato_rt as lrt
from legato_rt.powerbudget import Setting, allocate

settings = st.builds(Setting, st.floats(0, 10), st.floats(0, 300))
jobs = st.lists(st.lists(settings, min_size=1, max_size=5), max_size=5)


def drawn(given: list[list[Setting]], chosen: list[int]) -> float:
    return sum(job[index].watts for job, index in zip(given, chosen, strict=True))


def exactly_drawn(given: list[list[Setting]], chosen: list[int]) -> Fraction:
    return sum((Fraction(job[i].watts) for job, i in zip(given, chosen, strict=True)), Fraction(0))


def worth(given: list[list[Setting]], chosen: list[int]) -> float:
    return sum(job[index].value for job, index in zip(given, chosen, strict=True))


@given(jobs, st.floats(0, 1))
def test_the_choice_is_the_best_within_the_budget(given: list[list[Setting]], part: float) -> None:
    least = sum(min(setting.watts for setting in job) for job in given)
    most = sum(max(setting.watts for setting in job) for job in given)
    budget_w = least + part * (most - least)
    chosen = allocate(given, budget_w)
    assert drawn(given, chosen) <= budget_w
    every = itertools.product(*(range(len(job)) for job in given))
    # Watts that are lost in the rounding of a sum still count.
    within = [c for c in every if exactly_drawn(given, list(c)) <= Fraction(budget_w)]
    best = max(worth(given, list(c)) for c in within) if within else 0.0
    assert worth(given, chosen) >= best * (1 - 1e-9)


@given(jobs, st.floats(0, 1), st.integers(2, 6))
def test_a_limit_on_what_is_kept_never_breaks_the_budget(
    given: list[list[Setting]], part: float, limit: int
) -> None:
    least = sum(min(setting.watts for setting in job) for job in given)
    budget_w = least * (1 + part) + 1.0
    assert drawn(given, allocate(given, budget_w, limit)) <= budget_w


def test_many_jobs() -> None:
    """300 jobs that could be slow or fast, and watts for 100 of them to be fast."""
    given = [[Setting(1.0, 10.0), Setting(1.5 + i / 1000, 20.0)] for i in range(300)]
    chosen = allocate(given, 4000.0)
    assert drawn(given, chosen) == 4000.0
    assert chosen == [0] * 200 + [1] * 100


def test_a_budget_below_the_least_is_refused() -> None:
    given = [[Setting(1.0, 100.0), Setting(2.0, 200.0)], [Setting(1.0, 50.0)]]
    assert allocate(given, 150.0) == [0, 0]
    with pytest.raises(lrt.UsageError, match="draw 150 W at least, not 149 W"):
        allocate(given, 149.0)
    assert allocate([], 0.0) == []
