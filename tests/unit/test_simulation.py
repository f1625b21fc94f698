"""Recorded graphs in virtual time: times, energy, transfers, disturbance, determinism."""

import pytest

from legato_rt.costs import Table
from legato_rt.energy import ConstantPower
from legato_rt.errors import UsageError
from legato_rt.executor.timeline import Disturbance
from legato_rt.formats.recorded import GraphRecord, TaskRecord
from legato_rt.machine import Device, Link, Machine, OperatingPoint
from legato_rt.policy import POLICIES
from legato_rt.simulation import SimulationResult, simulate

CPU = Device("cpu", "cpu", ("cpu",), 2, ConstantPower(active_w=10.0, idle_w=2.0))
GPU = Device("gpu", "cuda", ("cuda",), 1, ConstantPower(100.0, 20.0), memory="gpu")
BOTH = Machine((CPU, GPU), (Link("host", "gpu", 1e9, 0.5, 1e-9), Link("gpu", "host", 1e9, 0.5)))
TIMES = Table({"big": {"cpu": 8.0, "cuda": 1.0}, "small": {"cpu": 1.0, "cuda": 1.0}})


def chain(*kinds: str) -> GraphRecord:
    """Tasks one after the other, all on one piece of data of a gigabyte."""
    datum = (("x", 1e9),)
    return GraphRecord(
        tuple(
            TaskRecord(f"{kind}{i}", kind, (i - 1,) if i else (), datum, datum)
            for i, kind in enumerate(kinds)
        )
    )


def independent(kind: str, count: int) -> GraphRecord:
    return GraphRecord(tuple(TaskRecord(f"{kind}{i}", kind) for i in range(count)))


def ran(result: SimulationResult) -> list[tuple[int, str, float, float]]:
    """(task, device, start, stop) of every run."""
    return [
        (r.node, result.trace.devices[r.worker], r.start_ns / 1e9, r.stop_ns / 1e9)
        for r in result.trace
    ]


def test_eft_sends_each_task_where_it_ends_first() -> None:
    result = simulate(independent("big", 3), BOTH, TIMES, "eft", transfers=False)
    assert [device for _, device, _, _ in ran(result)] == ["gpu", "gpu", "gpu"]
    assert result.makespan_s == 3.0
    result = simulate(independent("small", 6), BOTH, TIMES, "eft", transfers=False)
    assert sorted(d for _, d, _, _ in ran(result)) == ["cpu"] * 4 + ["gpu"] * 2
    assert result.makespan_s == 2.0


def test_energy_is_told_by_device_and_cause() -> None:
    result = simulate(independent("big", 3), BOTH, TIMES, "eft", transfers=False)
    assert result.energy_j == {
        "cpu": {"active": 0.0, "idle": 12.0, "transfer": 0.0},
        "gpu": {"active": 300.0, "idle": 0.0, "transfer": 0.0},
    }
    assert result.joules == 312.0


def test_data_is_brought_and_stays() -> None:
    result = simulate(chain("big", "big", "small"), BOTH, TIMES, "eft")
    # The copy takes 1.5 s once; the small task would be as quick on the CPU, but for the way back.
    assert ran(result) == [(0, "gpu", 0.0, 2.5), (1, "gpu", 2.5, 3.5), (2, "gpu", 3.5, 4.5)]
    assert result.energy_j["gpu"]["transfer"] == pytest.approx(1.0)
    assert result.energy_j["gpu"]["active"] == pytest.approx(300.0)


def test_transfers_decide_where_a_task_goes() -> None:
    result = simulate(chain("small", "small"), BOTH, TIMES, "eft")
    assert [device for _, device, _, _ in ran(result)] == ["cpu", "cpu"]


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_every_policy_runs_every_task_once_and_in_order(policy: str) -> None:
    record = chain(*["big", "small"] * 10)
    result = simulate(record, BOTH, TIMES, policy)
    assert [node for node, _, _, _ in ran(result)] == list(range(20))
    starts = [start for _, _, start, _ in ran(result)]
    stops = [stop for _, _, _, stop in ran(result)]
    assert all(stop <= start for stop, start in zip(stops, starts[1:], strict=False))
    assert result.failed == ()


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_the_same_seed_gives_the_same_run(policy: str) -> None:
    def run(seed: int) -> list[tuple[int, str, float, float]]:
        noisy = Disturbance(noise=0.3, failures=0.1, seed=seed)
        return ran(simulate(independent("big", 40), BOTH, TIMES, policy, disturbance=noisy))

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_failures_spread_to_what_needs_the_task() -> None:
    certain = Disturbance(failures=1.0)
    result = simulate(chain("big", "small"), BOTH, TIMES, "eft", disturbance=certain)
    assert len(result.trace) == 1
    assert result.failed == ("big#0", "small#1")


def test_stale_estimates_and_throttling_make_a_device_slower_than_believed() -> None:
    record = independent("big", 4)
    stale = Disturbance(stale={"gpu": 2.0})
    assert simulate(record, BOTH, TIMES, "eft", disturbance=stale).makespan_s == 8.0
    throttled = Disturbance(throttled=[(1.5, "gpu", 0.5)])
    assert simulate(record, BOTH, TIMES, "eft", disturbance=throttled).makespan_s == 6.0


def test_a_task_without_a_time_is_refused() -> None:
    with pytest.raises(UsageError, match="no time is given for unheard"):
        simulate(independent("unheard", 1), BOTH, TIMES, "eft")


def test_times_of_their_own_come_from_the_record() -> None:
    tasks = (TaskRecord("a", "k", seconds={"cpu": 3.0}), TaskRecord("b", "k", seconds={"cpu": 4.0}))
    assert simulate(GraphRecord(tasks), BOTH).makespan_s == 4.0
    twice = (TaskRecord("a", "k", seconds={"cpu": 3.0}), TaskRecord("a", "k", seconds={"cpu": 4.0}))
    with pytest.raises(UsageError, match="several tasks are called a"):
        simulate(GraphRecord(twice), BOTH)


def test_a_table_knows_operating_points() -> None:
    points = (OperatingPoint("fast", 1.0, 100.0), OperatingPoint("slow", 0.5, 40.0))
    gpu = Device("gpu", "cuda", ("cuda",), 1, ConstantPower(100.0, 20.0), points=points)
    table = Table({"k": {"cuda": 2.0}}, {("k", "cuda", "slow"): 99.0})
    node = TaskRecord("k0", "k")
    record = GraphRecord((node,))
    result = simulate(record, Machine((gpu,)), table)
    assert (result.makespan_s, result.energy_j["gpu"]["active"]) == (2.0, 200.0)
    given = Table({"k": {"cuda": 2.0}}, at_points={("k", "gpu", "fast"): 3.0})
    assert simulate(record, Machine((gpu,)), given).makespan_s == 2.0
    given = Table({"k": {"gpu": 2.0}}, at_points={("k", "gpu", "fast"): 3.0})
    assert simulate(record, Machine((gpu,)), given).makespan_s == 3.0


def test_a_time_below_zero_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot take"):
        Table({"k": {"cpu": -1.0}})
