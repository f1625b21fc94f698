"""Sequential consistency: any program gives what it would give if every submit ran on the spot."""

import os
from typing import Any

import pytest
from hypothesis import Phase, given, settings

from legato_rt.policy import POLICIES
from tests.helpers.parallel import Parallel
from tests.helpers.programs import Program, programs
from tests.helpers.sequential import Sequential

# For a longer hunt: LEGATO_RT_EXAMPLES=500 make test ARGS=tests/property/test_sequential.py
EXAMPLES = int(os.environ.get("LEGATO_RT_EXAMPLES", "6"))

SERIAL = [pytest.param({"executor": "serial", "policy": p}, id=f"serial-{p}") for p in POLICIES]
THREADS = [
    pytest.param({"executor": "threads", "policy": p, "workers": n}, id=f"threads-{n}-{p}")
    for n in (1, 2, 4)
    for p in POLICIES
]
CONFIGURATIONS = [*SERIAL, *THREADS]

every_configuration = pytest.mark.parametrize("options", CONFIGURATIONS)


def check(program: Program, options: dict[str, Any]) -> None:
    """Run a program on a runtime and on the spot, and compare all that can be seen."""
    run = Parallel(program, **options)
    found = run.outcome()
    expected = Sequential(program, run.cancelled).outcome()
    for mine, theirs in zip(found, expected, strict=True):
        assert mine == theirs
    check_overlap(run)


def check_overlap(run: Parallel) -> None:
    """No two bodies that conflict ran at the same time, but for a task and its own children."""
    keys = {future.seq: key for key, future in run.futures.items()}
    records = sorted((r for r in run.runtime.trace if r.node in keys), key=lambda r: r.start_ns)
    for i, record in enumerate(records):
        for other in records[i + 1 :]:
            if other.start_ns >= record.stop_ns:
                break
            first, second = keys[record.node], keys[other.node]
            if not second.startswith(f"{first}."):
                assert not conflict(run, first, second), (first, second)


def conflict(run: Parallel, first: str, second: str) -> bool:
    """Whether two bodies touched the same place and one of them wrote it."""
    reads, writes = run.touched[first]
    others, written = run.touched[second]
    return bool(writes & written or writes & others or reads & written)


@every_configuration
@settings(max_examples=EXAMPLES, phases=set(Phase) - {Phase.explain})
@given(program=programs())
def test_programs_without_failures(options: dict[str, Any], program: Program) -> None:
    check(program, options)


@every_configuration
@settings(max_examples=EXAMPLES, phases=set(Phase) - {Phase.explain})
@given(program=programs(failing=True))
def test_programs_with_failures(options: dict[str, Any], program: Program) -> None:
    check(program, options)


@every_configuration
@settings(max_examples=EXAMPLES, phases=set(Phase) - {Phase.explain})
@given(program=programs(failing=True, cancelling=True))
def test_programs_with_failures_and_cancellations(
    options: dict[str, Any], program: Program
) -> None:
    check(program, options)


@pytest.mark.slow
@every_configuration
@settings(max_examples=EXAMPLES, phases=set(Phase) - {Phase.explain})
@given(program=programs(failing=True, cancelling=True, limit=2000))
def test_long_programs(options: dict[str, Any], program: Program) -> None:
    check(program, options)
