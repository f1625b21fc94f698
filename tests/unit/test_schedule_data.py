"""The measurements that schedules are evaluated on: reading them, and their references."""

import itertools
from pathlib import Path
from types import ModuleType

import pytest

from bench import schedule_data, schedules, schedules_power, schedules_resources, schedules_vision
from legato_rt import Machine, order


def test_without_the_folder_the_address_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(schedule_data.VARIABLE, raising=False)
    with pytest.raises(
        schedule_data.MissingData,
        match=r"set LEGATO_RT_DATA to a folder with dvfs/gtx_titan_x.csv, published at https://",
    ):
        schedule_data.clocks()
    monkeypatch.setenv(schedule_data.VARIABLE, str(tmp_path))
    with pytest.raises(schedule_data.MissingData, match=r"starpu/kernels.csv is not there"):
        schedule_data.cholesky_seconds("mirage")


def test_an_evaluation_without_its_data_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(schedule_data.VARIABLE, raising=False)
    assert schedules.main(["--points", "vision"]) == 1
    assert "https://github.com/isu-rcl/cvBench" in capsys.readouterr().err


@pytest.mark.parametrize("n", [1, 2, 5])
def test_cholesky_orders_every_write(n: int) -> None:
    graph = schedule_data.cholesky(n)
    assert len(graph.tasks) == n * (n + 1) * (n + 2) // 6
    after: list[set[int]] = []
    for task in graph.tasks:
        after.append(set(task.predecessors).union(*(after[p] for p in task.predecessors)))
    for first, then in itertools.combinations(range(len(graph.tasks)), 2):
        touched = {name for name, _ in graph.tasks[then].reads}
        written = {name for name, _ in graph.tasks[first].writes}
        assert not (written & touched) or first in after[then]
    size = 4.0 * schedule_data.TILE**2
    assert all(edge == size for edge in graph.dag().successor_bytes)


def rows_ok(point: ModuleType) -> bool:
    try:
        return all(row.ok for row in point.rows())
    except schedule_data.MissingData as missing:
        pytest.skip(str(missing))


def test_power_budgets_are_shared_best() -> None:
    assert rows_ok(schedules_power)


def test_vision_kernels_go_where_they_cost_least() -> None:
    assert rows_ok(schedules_vision)


@pytest.mark.slow
def test_projects_are_scheduled_well() -> None:
    assert rows_ok(schedules_resources)


CHOLESKY = {
    ("mirage", 8): (1.604, 1.514),
    ("mirage", 16): (1.365, 1.343),
    ("sirocco", 12): (1.168, 1.000),
    ("sirocco", 16): (1.433, 1.199),
}
"""Makespan over bound of HEFT by mean and by fastest times, as computed elsewhere."""


@pytest.mark.parametrize("case", CHOLESKY)
def test_heft_on_cholesky_is_that_of_the_reference(case: tuple[str, int]) -> None:
    name, n = case
    try:
        costs = schedule_data.cholesky_seconds(name)
    except schedule_data.MissingData as missing:
        pytest.skip(str(missing))
    devices = [d for d in Machine.from_toml(name).devices for _ in range(d.workers)]
    graph = schedule_data.cholesky(n)
    seconds = graph.seconds(devices, costs)
    bound_s = order.lower_bounds(graph.dag(), seconds, rounds=0).simple_s
    for rule, expected in zip(("mean", "fastest"), CHOLESKY[case], strict=True):
        made = order.heft(graph.dag(), seconds, rank=rule)  # type: ignore[arg-type]
        assert made.makespan_s / bound_s == pytest.approx(expected, abs=6e-4)
