"""Energy counters of processors: what is summed, and what befalls a counter."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legato_rt.devices.counters import Counter
from legato_rt.devices.rapl import RaplDriver, domains
from legato_rt.energy import ConstantPower, EnergyMeter, Reading
from legato_rt.errors import DeviceError
from legato_rt.machine import Device
from tests.helpers.powercap import SPAN_UJ, Time, Tree, server

POWER = ConstantPower(10.0, 2.0)
CPU = Device("cpu", "cpu", ("cpu",), 2, POWER)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return server(tmp_path)


def driver(tree: Tree) -> RaplDriver:
    return RaplDriver(str(tree.root), tree.time.clocks, str(tree.root / "cpuinfo"))


def meter(tree: Tree) -> EnergyMeter:
    (found,) = driver(tree).open([CPU])
    return found


def joules(meter: EnergyMeter) -> float:
    reading = meter.read()
    assert reading is not None, meter.problem
    assert reading.source == "measured"
    return reading.joules


# -- what is summed -----------------------------------------------------------------------------


def test_packages_and_their_memory_are_summed_and_nothing_twice(tree: Tree) -> None:
    found = {domain.name: domain.counted for domain in domains(tree.root)}
    assert found == {
        "package-0": True,
        "package-0/core": False,
        "package-0/uncore": False,
        "package-0/dram": True,
        "package-1": True,
        "package-1/core": False,
        "package-1/uncore": False,
        "package-1/dram": True,
        "psys": False,
    }
    one = meter(tree)
    for path in (p.name for p in tree.root.glob("intel-rapl*:*")):
        tree.add(path, {"intel-rapl:0": 1, "intel-rapl:1": 2, "intel-rapl:0:2": 4}.get(path, 100))
    tree.set("intel-rapl:1:2", 1_000_000 + 8_000_000)
    tree.time.awake_s += 1.0
    assert joules(one) == pytest.approx(15.0)


def test_a_package_that_only_the_second_way_shows_is_counted(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.zone("intel-rapl-mmio:0", "package-0")
    one = meter(tree)
    tree.add("intel-rapl-mmio:0", 3.0, 1.0)
    assert joules(one) == pytest.approx(3.0)


def test_other_power_zones_are_left_alone(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.zone("dtpm:0", "package-0")
    tree.zone("intel-rapl:x", "package-0")
    assert domains(tmp_path) == []


@pytest.mark.parametrize(
    ("device", "covered"),
    [
        (CPU, True),
        (Device("opencl:0", "opencl", ("opencl",), 2, POWER, "pthread-Some CPU @ 2 GHz"), True),
        (Device("opencl:0", "opencl", ("opencl",), 2, POWER, "Some GPU"), False),
        (Device("cpu", "cpu", ("cpu",), 2, POWER, simulated=True), False),
    ],
)
def test_what_runs_on_the_processors_is_covered(tree: Tree, device: Device, covered: bool) -> None:
    (tree.root / "cpuinfo").write_text("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n")
    assert [m.devices for m in driver(tree).open([device])] == [(device.name,)] * covered


def test_the_root_can_be_set(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEGATO_RT_POWERCAP", str(tree.root))
    assert RaplDriver().root == tree.root
    assert len(RaplDriver().open([CPU])) == 1


# -- what befalls a counter ---------------------------------------------------------------------


def test_what_was_not_counted_is_none_and_not_zero(tree: Tree) -> None:
    assert meter(tree).read() is None


def test_it_wraps_around(tree: Tree) -> None:
    tree.set("intel-rapl:0", SPAN_UJ - 2_000_000)
    one = meter(tree)
    tree.add("intel-rapl:0", 5.0, 1.0)
    tree.add("intel-rapl:1", 1.0)
    assert joules(one) == pytest.approx(6.0)
    tree.add("intel-rapl:0", 5.0, 1.0)
    tree.add("intel-rapl:1", 1.0)
    assert joules(one) == pytest.approx(12.0)


def test_memory_that_no_part_drives_is_left_out(tree: Tree) -> None:
    one = meter(tree)
    for _ in range(5):
        tree.add("intel-rapl:0", 50.0)
        tree.add("intel-rapl:1", 50.0, 5.0)
        assert one.read() is not None
    assert joules(one) == pytest.approx(500.0)
    assert one.problem == ""


@pytest.mark.parametrize("stopped", ["intel-rapl:1", "intel-rapl:0:2"])
def test_a_counter_that_stops_ends_the_measurement(tree: Tree, stopped: str) -> None:
    one = meter(tree)
    paths = {"intel-rapl:0", "intel-rapl:1", "intel-rapl:0:2"}
    for path in paths:
        tree.add(path, 5.0)
    tree.time.awake_s += 1.0
    assert joules(one) == pytest.approx(15.0)
    for path in paths - {stopped}:
        tree.add(path, 5.0)
    tree.time.awake_s += 3.0
    assert one.read() is None
    assert "stands still for 3 s" in one.problem
    tree.add(stopped, 5.0, 1.0)
    assert one.read() is None, "what it did not count meanwhile is lost"


def test_a_suspended_machine_may_have_lost_its_count(tree: Tree) -> None:
    one = meter(tree)
    tree.set("intel-rapl:0", 10)
    tree.time.awake_s += 1.0
    tree.time.asleep_s += 3600.0
    assert one.read() is None
    assert "package-0 started anew while the machine slept for 3600 s" in one.problem


def test_a_count_that_outlives_the_sleep_goes_on(tree: Tree) -> None:
    one = meter(tree)
    tree.time.asleep_s += 3600.0
    tree.add("intel-rapl:0", 30.0)
    tree.add("intel-rapl:1", 20.0, 1.0)
    assert joules(one) == pytest.approx(50.0)


def test_a_count_that_starts_anew_is_no_wrap(tree: Tree) -> None:
    tree.set("intel-rapl:0", 90_000_000_000)
    one = meter(tree)
    tree.set("intel-rapl:0", 10)
    tree.time.awake_s += 10.0
    assert one.read() is None
    assert "package-0 jumped by more than" in one.problem


def test_a_count_that_nobody_read_for_long_is_not_guessed(tree: Tree) -> None:
    one = meter(tree)
    tree.add("intel-rapl:0", 300.0, 2 * SPAN_UJ / 1e6 / 1000.0)
    assert one.read() is None
    assert "may have wrapped around more than once" in one.problem


def test_a_package_that_goes_away_ends_the_measurement(tree: Tree) -> None:
    one = meter(tree)
    tree.add("intel-rapl:0", 5.0)
    tree.add("intel-rapl:1", 5.0, 1.0)
    assert joules(one) == pytest.approx(10.0)
    (tree.root / "intel-rapl:1" / "energy_uj").unlink()
    assert one.read() is None
    assert "the counter of package-1 is gone" in one.problem


@pytest.fixture(params=[PermissionError(errno.EACCES, "denied"), OSError(errno.ENODEV, "gone")])
def refusing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> OSError:
    """Have counters refuse to be read, as for a user where the tests may run as root."""
    read = Path.read_text

    def refuse(self: Path, *args: str, **kwargs: str) -> str:
        if self.name == "energy_uj":
            raise request.param
        return read(self, *args, **kwargs)

    monkeypatch.setattr(Path, "read_text", refuse)
    return request.param


def test_a_counter_that_refuses_is_a_problem_that_says_what_to_do(
    tree: Tree, refusing: OSError
) -> None:
    assert driver(tree).open([CPU]) == []
    problems = driver(tree).problems()
    assert len(problems) == 4
    if isinstance(refusing, PermissionError):
        path = tree.root / "intel-rapl:0" / "energy_uj"
        assert problems[0].startswith(f"no permission to read {path}")
        assert f"`chmod a+r {path}`" in problems[0]
    else:
        assert "processor was taken out of use" in problems[0]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_permission_of_real_files(tree: Tree) -> None:
    (tree.root / "intel-rapl:0" / "energy_uj").chmod(0)
    assert driver(tree).open([CPU]) == []
    assert "no permission" in driver(tree).problems()[0]


def test_problems_where_there_is_nothing(tmp_path: Path) -> None:
    (problem,) = RaplDriver(str(tmp_path / "none")).problems()
    assert "is modelled" in problem
    (problem,) = RaplDriver(str(tmp_path)).problems()
    assert "intel_rapl_msr must be loaded" in problem
    assert RaplDriver(str(tmp_path)).open([CPU]) == []


def test_no_problem_where_all_is_well(tree: Tree) -> None:
    assert driver(tree).problems() == []


@pytest.mark.parametrize("content", ["", "many", "0"])
def test_a_range_that_is_none_is_a_problem(tree: Tree, content: str) -> None:
    (tree.root / "intel-rapl:0" / "max_energy_range_uj").write_text(content)
    assert driver(tree).open([CPU]) == []
    assert len(driver(tree).problems()) == 1


# -- any course of a counter --------------------------------------------------------------------


@given(
    span=st.integers(10**9, 10**12),
    start=st.integers(0, 10**12),
    steps=st.lists(st.tuples(st.floats(0.01, 1.0), st.floats(0.001, 1.0)), min_size=1),
)
def test_every_joule_is_counted_once_whenever_it_is_read_in_time(
    span: int, start: int, steps: list[tuple[float, float]]
) -> None:
    """``steps``: the time until the next read and the power, as parts of what is allowed."""
    time = Time()
    true_uj = start % span
    first_uj = true_uj
    counter = Counter("c", lambda: true_uj % span, 1e-6, span, 1000.0, time.clocks)
    assert counter.period_s is not None
    for length, load in steps:
        elapsed_s = counter.period_s * length
        time.awake_s += elapsed_s
        true_uj += max(round(elapsed_s * 1000.0 * load * 1e6), 1)
        assert counter.joules() == pytest.approx((true_uj - first_uj) / 1e6)
    assert counter.problem == ""


@given(st.lists(st.tuples(st.integers(0, 10**9), st.floats(0, 100), st.floats(0, 100)), min_size=2))
def test_whatever_a_counter_shows_the_sum_never_falls_and_never_recovers(
    course: list[tuple[int, float, float]],
) -> None:
    time = Time()
    shown = iter([value for value, _, _ in course])
    counter = Counter("c", lambda: next(shown), 1e-6, 10**9, 1000.0, time.clocks)
    sums: list[float | None] = []
    for _, awake_s, asleep_s in course[1:]:
        time.awake_s += awake_s
        time.asleep_s += asleep_s
        broken = bool(counter.problem)
        sums.append(counter.joules())
        assert not broken or sums[-1] is None
        assert sums[-1] is None or sums[-1] > 0
    known = [one for one in sums if one is not None]
    assert known == sorted(known)


def test_a_counter_that_cannot_be_read_at_first_raises() -> None:
    def refuse() -> int:
        raise DeviceError("no")

    with pytest.raises(DeviceError):
        Counter("c", refuse, 1.0)


def test_a_reading_is_measured(tree: Tree) -> None:
    one = meter(tree)
    tree.add("intel-rapl:0", 1.0)
    tree.add("intel-rapl:1", 1.0, 1.0)
    assert one.read() == Reading(pytest.approx(2.0), "measured")
    one.close()
