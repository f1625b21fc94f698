"""Meters of a runtime: opened, sampled, read and closed; the shares of what they measured."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import legato_rt as lrt
from legato_rt import metering
from legato_rt.devices import nvml, rapl
from legato_rt.energy import ConstantPower, EnergyMeter, Measurement, Reading
from legato_rt.machine import Device
from legato_rt.metering import Meters, meter_drivers
from legato_rt.report import Report, summarise
from tests.helpers.nvml_standin import Gpu, Library
from tests.helpers.powercap import Tree, server

POWER = ConstantPower(10.0, 2.0)
CPU = Device("cpu", "cpu", ("cpu",), 2, POWER)
GPU = Device("cuda:0", "cuda", ("cuda",), 1, ConstantPower(300.0, 50.0))
OPENCL = Device("opencl:0", "opencl", ("opencl",), 1, ConstantPower(20.0, 4.0))
DEVICES = (CPU, GPU, OPENCL)


class Made:
    """A meter that says what it is told to, and its driver."""

    def __init__(
        self,
        name: str,
        *devices: str,
        period_s: float | None = None,
        read: Callable[[], Reading | None] = lambda: Reading(5.0, "measured"),
    ) -> None:
        self.name, self.devices, self.period_s = name, devices, period_s
        self.read = read
        self.problem = ""
        self.closed = 0

    def close(self) -> None:
        self.closed += 1

    def open(self, devices: Sequence[Device]) -> Sequence[EnergyMeter]:
        return [self]

    def problems(self) -> Sequence[str]:
        return []


def broken(*_: Any) -> Any:
    raise OSError("on purpose")


# -- the life of meters -------------------------------------------------------------------------


def test_both_drivers_are_installed() -> None:
    assert meter_drivers() == (nvml.driver, rapl.driver)


def test_without_a_meter_nothing_is_there() -> None:
    threads = threading.active_count()
    meters = Meters.open(DEVICES, ())
    assert threading.active_count() == threads
    assert meters.measurements() == ()
    meters.close()
    assert meters.measurements() == ()


def test_a_meter_without_a_period_needs_no_thread() -> None:
    threads = threading.active_count()
    meters = Meters.open(DEVICES, [Made("one", "cpu")])
    assert threading.active_count() == threads
    meters.close()


def test_a_meter_is_sampled_until_it_is_closed() -> None:
    often = threading.Semaphore(0)

    def read() -> Reading:
        often.release()
        return Reading(1.0, "measured")

    sampled = Made("sampled", "cpu", period_s=1e-4, read=read)
    other = Made("other", "cuda:0", read=broken)
    meters = Meters.open(DEVICES, [sampled, other])
    for _ in range(3):
        assert often.acquire(timeout=60)
    meters.close()
    meters.close()
    assert (sampled.closed, other.closed) == (1, 1)


def test_the_last_word_stands() -> None:
    readings = iter([Reading(1.0, "measured"), Reading(2.0, "measured"), Reading(3.0, "measured")])
    meters = Meters.open(DEVICES, [Made("one", "cpu", read=lambda: next(readings))])
    assert meters.measurements()[0].energy == Reading(1.0, "measured")
    meters.close()
    assert [meters.measurements()[0].energy for _ in range(2)] == [Reading(2.0, "measured")] * 2


def test_a_meter_that_raises_costs_its_measurement_only() -> None:
    meters = Meters.open(DEVICES, [Made("bad", "cpu", read=broken), Made("good", "cuda:0")])
    for _ in range(2):
        assert meters.measurements() == (
            Measurement("bad", ("cpu",), None, "OSError: on purpose"),
            Measurement("good", ("cuda:0",), Reading(5.0, "measured")),
        )
        meters.close()


def test_a_driver_or_a_close_that_raises_costs_no_run() -> None:
    fails, closes = Made("fails", "cpu"), Made("closes", "cpu")
    fails.open = broken  # type: ignore[method-assign]
    closes.close = broken  # type: ignore[method-assign]
    meters = Meters.open(DEVICES, [fails, closes])
    meters.close()
    assert [m.problem for m in meters.measurements()] == ["", "OSError: on purpose"]


def test_no_device_is_counted_twice() -> None:
    first, second = Made("first", "cpu", "opencl:0"), Made("second", "cuda:0", "opencl:0")
    meters = Meters.open(DEVICES, [first, second])
    assert second.closed == 1
    assert meters.measurements() == (
        Measurement("first", ("cpu", "opencl:0"), Reading(5.0, "measured")),
        Measurement("second", (), None, "not used: first already counts opencl:0"),
    )
    meters.close()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("tests.nowhere:driver", "cannot be loaded"),
        ("tests.unit.test_metering:broken", "does not fulfil MeterDriver"),
    ],
)
def test_a_driver_that_is_none_is_refused(
    value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = metadata.EntryPoint("x", value, metering.GROUP)
    monkeypatch.setattr(metadata, "entry_points", lambda group: [entry])
    with pytest.raises(lrt.SettingError, match=said):
        meter_drivers.__wrapped__()


# -- the report ---------------------------------------------------------------------------------

TOTALS = {
    ("gemm", "cpu"): (10, 0, 2_000_000_000),
    ("gemm", "cuda:0"): (5, 1, 500_000_000),
    ("axpy", "cpu"): (1, 0, 1_000_000_000),
}


def rows(report: Report) -> dict[tuple[str, str], Reading]:
    tasks = {(row.task, row.device): row.energy for row in report.kinds}
    return tasks | {("idle", row.device): row.idle for row in report.devices}


def test_a_measured_device_is_shared_out_and_others_are_modelled() -> None:
    measured = Measurement("rapl", ("cpu",), Reading(72.0, "measured"))
    report = summarise(2.0, (CPU, GPU), TOTALS, 0, (measured,))
    cpu, gpu = report.devices
    assert cpu.energy == Reading(pytest.approx(72.0), "measured")
    assert gpu.energy == Reading(225.0, "modelled")
    # By the model 20 J, 10 J and 2 J of 32 J.
    assert rows(report) == {
        ("gemm", "cpu"): Reading(pytest.approx(45.0), "apportioned"),
        ("axpy", "cpu"): Reading(pytest.approx(22.5), "apportioned"),
        ("idle", "cpu"): Reading(pytest.approx(4.5), "apportioned"),
        ("gemm", "cuda:0"): Reading(150.0, "modelled"),
        ("idle", "cuda:0"): Reading(75.0, "modelled"),
    }
    assert report.energy == Reading(297.0, "modelled")


def test_a_sum_over_measured_devices_is_measured() -> None:
    both = (
        Measurement("rapl", ("cpu", "opencl:0"), Reading(60.0, "measured")),
        Measurement("nvml:cuda:0", ("cuda:0",), Reading(200.0, "measured")),
    )
    report = summarise(2.0, DEVICES, TOTALS, 0, both)
    assert report.energy == Reading(260.0, "measured")
    assert [row.energy.source for row in report.devices] == [
        "apportioned",
        "measured",
        "apportioned",
    ]


def test_a_measurement_that_failed_leaves_the_model_and_says_why() -> None:
    failed = Measurement("rapl", ("cpu",), None, "the counter of package-1 is gone")
    report = summarise(2.0, (CPU,), TOTALS, 0, (failed,))
    assert report.devices == summarise(2.0, (CPU,), TOTALS, 0).devices
    assert report.energy.source == "modelled"
    assert "  rapl: the counter of package-1 is gone" in str(report).splitlines()


def test_where_the_model_says_nothing_all_is_idle() -> None:
    free = Device("cpu", "cpu", ("cpu",), 2, ConstantPower(0.0, 0.0))
    measured = Measurement("rapl", ("cpu",), Reading(6.0, "measured"))
    report = summarise(2.0, (free,), TOTALS, 0, (measured,))
    assert report.devices[0].energy == Reading(6.0, "measured")
    assert report.devices[0].idle == Reading(6.0, "apportioned")


def test_one_body_has_its_part_of_its_row() -> None:
    measured = Measurement("rapl", ("cpu",), Reading(72.0, "measured"))
    report = summarise(2.0, (CPU, GPU), TOTALS, 0, (measured,))
    assert report.energy_of("gemm", "cpu", 0.5) == Reading(pytest.approx(11.25), "apportioned")
    assert report.energy_of("gemm", "cuda:0", 0.1) == Reading(pytest.approx(30.0), "modelled")
    assert report.energy_of("axpy", "cuda:0", 0.1) is None


watts = st.floats(0.0, 1000.0)
devices = st.builds(
    Device,
    st.sampled_from(["cpu", "cuda:0", "opencl:0"]),
    st.just("cpu"),
    st.just(("cpu",)),
    st.integers(1, 64),
    st.builds(ConstantPower, watts, watts),
)
totals = st.dictionaries(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["cpu", "cuda:0", "opencl:0"])),
    st.tuples(st.integers(1, 10**6), st.just(0), st.integers(0, 10**12)),
)


@given(
    seconds=st.floats(0.0, 1e5),
    machine=st.lists(devices, min_size=1, unique_by=lambda d: d.name),
    totals=totals,
    joules=st.floats(1e-6, 1e9),
    data=st.data(),
)
def test_shares_add_up_to_what_was_measured(
    seconds: float,
    machine: list[Device],
    totals: dict[tuple[str, str], tuple[int, int, int]],
    joules: float,
    data: st.DataObject,
) -> None:
    names = [device.name for device in machine]
    covered = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    measured = Measurement("meter", tuple(covered), Reading(joules, "measured"))
    report = summarise(seconds, machine, totals, 0, (measured,))
    shares = {place: energy for place, energy in rows(report).items() if place[1] in covered}
    assert sum(e.joules for e in shares.values()) == pytest.approx(joules, rel=1e-6)
    assert {e.source for e in shares.values()} == {"apportioned"}
    for row in report.devices:
        own = sum(e.joules for place, e in rows(report).items() if place[1] == row.device)
        assert own == pytest.approx(row.energy.joules, rel=1e-6, abs=1e-9)
        alone = "measured" if len(covered) == 1 else "apportioned"
        assert row.energy.source == (alone if row.device in covered else "modelled")
    total = sum(row.energy.joules for row in report.devices)
    assert report.energy.joules == pytest.approx(total, rel=1e-6)
    assert report.energy.source == ("measured" if len(covered) == len(names) else "modelled")


# -- the runtime --------------------------------------------------------------------------------


@pytest.fixture
def counters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    monkeypatch.setenv("LEGATO_RT_POWERCAP", str(tmp_path))
    return server(tmp_path)


@pytest.mark.parametrize("executor", ["serial", "threads"])
def test_a_runtime_reports_what_was_measured(counters: Tree, executor: str) -> None:
    @lrt.task
    def work() -> None:
        counters.add("intel-rapl:0", 0.3)
        counters.add("intel-rapl:1", 0.1)

    with lrt.Runtime(workers=1, devices="cpu", executor=executor, trace=True) as runtime:
        work.submit().result()
        during = runtime.report()
        work.submit()
    counters.add("intel-rapl:0", 5.0)
    report = runtime.report()
    assert during.energy == Reading(pytest.approx(0.4), "measured")
    assert report.energy == Reading(pytest.approx(0.8), "measured")
    assert report == runtime.report()
    (kind,) = report.kinds
    assert kind.energy.source == "apportioned"
    assert kind.energy.joules + report.devices[0].idle.joules == pytest.approx(0.8)
    bodies = [
        report.energy_of(r.task, "cpu", (r.stop_ns - r.start_ns) / 1e9) for r in runtime.trace
    ]
    assert sum(b.joules for b in bodies if b is not None) == pytest.approx(kind.energy.joules)


def test_a_runtime_whose_counter_stays_away_is_modelled(counters: Tree) -> None:
    with lrt.Runtime(workers=1, devices="cpu") as runtime:
        (counters.root / "intel-rapl:1" / "energy_uj").unlink()
    report = runtime.report()
    assert report.energy.source == "modelled"
    assert "package-1 is gone" in str(report)


def test_no_meter_is_left_open(counters: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library({"0000:01:00.0": Gpu()})
    monkeypatch.setitem(sys.modules, "pynvml", library.module())
    driver = nvml.NvmlDriver(lambda: ["0000:01:00.0"])
    meters = Meters.open((CPU, GPU), (driver, rapl.driver))
    assert library.users == 1
    library.gpus["0000:01:00.0"].energy_mj += 2000
    meters.close()
    assert library.users == 0
    assert meters.measurements()[0].energy == Reading(2.0, "measured")
