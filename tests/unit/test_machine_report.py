"""Devices of a machine, joules with their source, the report, the trace file, and tiles."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import legato_rt as lrt
from legato_rt.energy import ConstantPower
from legato_rt.report import KindRow, summarise
from legato_rt.trace import Record, Trace

POWER = ConstantPower(active_w=10.0, idle_w=2.0)


def device(name: str, kind: str, workers: int = 1, simulated: bool = False) -> lrt.Device:
    return lrt.Device(name, kind, (kind,), workers, POWER, simulated=simulated)


MACHINE = lrt.Machine(
    (
        device("cpu", "cpu", workers=4),
        device("opencl:0", "opencl"),
        device("opencl:1", "opencl"),
        device("simulated", "simulated", simulated=True),
    )
)


# -- machine ------------------------------------------------------------------------------------


def names(machine: lrt.Machine) -> list[str]:
    return [d.name for d in machine.devices]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (None, ["cpu", "opencl:0", "opencl:1"]),
        ("cpu", ["cpu"]),
        ("opencl", ["opencl:0", "opencl:1"]),
        ("opencl:1,cpu", ["opencl:1", "cpu"]),
        (" opencl:1 , opencl ", ["opencl:1", "opencl:0"]),
        (["simulated"], ["simulated"]),
        (("cpu", "cpu"), ["cpu"]),
    ],
)
def test_select(wanted: Any, expected: list[str]) -> None:
    assert names(MACHINE.select(wanted)) == expected


@pytest.mark.parametrize("wanted", ["gpu", "cpu,gpu", ["cpu", "gpu"]])
def test_select_says_what_there_is(wanted: Any) -> None:
    with pytest.raises(
        lrt.SettingError, match=r"no device 'gpu'.*there is cpu, opencl:0, opencl:1"
    ):
        MACHINE.select(wanted)


def test_select_from_nothing() -> None:
    with pytest.raises(lrt.SettingError, match="there is nothing"):
        lrt.Machine().select("cpu")


def test_with_workers_changes_one_kind_of_a_copy() -> None:
    changed = MACHINE.with_workers("cpu", 2)
    assert [d.workers for d in changed.devices] == [2, 1, 1, 1]
    assert [d.workers for d in MACHINE.devices] == [4, 1, 1, 1]


# -- energy -------------------------------------------------------------------------------------

sources = st.sampled_from(["measured", "apportioned", "modelled"])


@given(st.lists(sources, min_size=1))
def test_a_sum_is_as_good_as_its_weakest_part(parts: list[Any]) -> None:
    total = lrt.Reading(0.0, "measured")
    for source in parts:
        total += lrt.Reading(1.0, source)
    assert total.joules == len(parts)
    ranks = ["measured", "apportioned", "modelled"]
    assert total.source == max(parts, key=ranks.index)


def test_constant_power_is_watts_times_seconds() -> None:
    assert POWER.busy(3.0) == lrt.Reading(30.0, "modelled")
    assert POWER.idle(3.0) == lrt.Reading(6.0, "modelled")
    assert str(POWER.busy(3.0)) == "30 J (modelled)"


# -- report -------------------------------------------------------------------------------------


def test_a_report_adds_up() -> None:
    totals = {
        ("gemm", "cpu"): (10, 0, 2_000_000_000),
        ("gemm", "opencl:0"): (5, 1, 500_000_000),
        ("axpy", "cpu"): (1, 0, 1_000_000_000),
    }
    report = summarise(2.0, MACHINE.devices[:2], totals, coarse=3)
    assert report.tasks == 16
    assert report.coarse == 3
    assert report.kinds[0] == KindRow("axpy", "cpu", 1, 0, 1.0, lrt.Reading(10.0, "modelled"))
    cpu, opencl = report.devices
    assert (cpu.busy_s, opencl.busy_s) == (3.0, 0.5)
    # Four workers for two seconds, of which three seconds of work.
    assert cpu.energy == lrt.Reading(3.0 * 10 + 5.0 * 2, "modelled")
    assert opencl.energy == lrt.Reading(0.5 * 10 + 1.5 * 2, "modelled")
    assert report.energy == lrt.Reading(48.0, "modelled")


def test_a_report_is_readable() -> None:
    totals = {("gemm", "cpu"): (10, 2, 2_000_000)}
    lines = str(summarise(2.0, MACHINE.devices[::3], totals, coarse=3)).splitlines()
    assert lines[0].startswith("10 tasks in 2.000 s, ")
    assert "(modelled)" in lines[0]
    row = ["gemm", "cpu", "10", "x", "200.0", "us", "0.02", "J", "(modelled)", "(2", "failed)"]
    assert lines[1].split() == row
    assert lines[2].startswith("  cpu: 4 workers, 0% busy")
    assert lines[3].startswith("  simulated (simulated): 1 workers, 0% busy")
    assert lines[4] == "  3 views were ordered more than needed"


def test_a_report_of_nothing() -> None:
    report = summarise(0.0, MACHINE.devices, {}, 0)
    assert report.tasks == 0
    assert report.energy == lrt.Reading(0.0, "modelled")
    assert str(report).startswith("0 tasks in 0.000 s, 0 J")


@lrt.task
def add(a: int, b: int) -> int:
    return a + b


@lrt.task
def fail() -> None:
    raise ValueError("on purpose")


def test_the_runtime_counts_what_ran_where() -> None:
    with lrt.Runtime(workers=1, devices="cpu") as runtime:
        futures = [add.submit(i, 1) for i in range(5000)]
        lost = fail.submit()
        assert isinstance(lost.exception(), lrt.TaskError)
        runtime.wait(*futures)
        report = runtime.report()
    rows = {row.task: row for row in report.kinds}
    assert {name: (row.count, row.failed) for name, row in rows.items()} == {
        "add": (5000, 0),
        "fail": (1, 1),
    }
    assert {row.device for row in report.kinds} == {"cpu"}
    assert 0 < report.devices[0].busy_s <= report.seconds


def test_a_report_stands_still_once_the_runtime_is_closed() -> None:
    with lrt.Runtime(workers=1) as runtime:
        add.submit(1, 2)
    assert runtime.report() == runtime.report()
    assert runtime.report().tasks == 1


# -- trace --------------------------------------------------------------------------------------

RECORDS = [
    Record(0, "add", "add", 1, 2_000_000_000, 2_500_000_000, True),
    Record(1, "fail", "fail", 0, 1_000_000_000, 1_000_000_100, False),
]


def test_a_trace_is_saved_in_seconds_from_its_first_start(tmp_path: Path) -> None:
    path = tmp_path / "new" / "trace.json"
    Trace(["cpu", "cpu"], RECORDS).save(path)
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["format"] == "legato_rt.trace/1"
    assert document["workers"] == [{"worker": 0, "device": "cpu"}, {"worker": 1, "device": "cpu"}]
    assert document["records"] == [
        {
            "node": 0,
            "task": "add",
            "variant": "add",
            "worker": 1,
            "start_s": 1.0,
            "stop_s": 1.5,
            "ok": True,
        },
        {
            "node": 1,
            "task": "fail",
            "variant": "fail",
            "worker": 0,
            "start_s": 0.0,
            "stop_s": 1e-07,
            "ok": False,
        },
    ]
    assert os.listdir(path.parent) == ["trace.json"]


def test_a_trace_replaces_an_older_one(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text("old", encoding="utf-8")
    Trace(["cpu"], []).save(str(path))
    assert json.loads(path.read_text(encoding="utf-8"))["records"] == []


def test_a_trace_is_a_sequence_of_records() -> None:
    trace = Trace(["cpu", "cpu"], RECORDS)
    assert len(trace) == 2
    assert list(trace) == RECORDS
    assert trace[1].task == "fail"
    assert trace[0] in trace


@pytest.mark.parametrize("executor", ["serial", "threads"])
def test_the_runtime_traces_every_body(executor: str, tmp_path: Path) -> None:
    with lrt.Runtime(workers=2, devices="cpu", executor=executor, trace=True) as runtime:
        first = add.submit(1, 2)
        second = add.submit(first, 3)
        lost = fail.submit()
        assert second.result() == 6
        lost.exception()
    trace = runtime.trace
    by_node = {record.node: record for record in trace}
    assert sorted(by_node) == [0, 1, 2]
    assert by_node[0].stop_ns <= by_node[1].start_ns
    assert [by_node[node].ok for node in range(3)] == [True, True, False]
    assert all(record.start_ns <= record.stop_ns for record in trace)
    assert trace.devices == ["cpu", "cpu"]
    trace.save(tmp_path / "trace.json")
    assert len(json.loads((tmp_path / "trace.json").read_text())["records"]) == 3


# -- tiles --------------------------------------------------------------------------------------

shapes = st.lists(st.integers(1, 9), min_size=1, max_size=3)


@given(shape=shapes, data=st.data())
def test_tiles_hold_each_element_once_and_in_place(shape: list[int], data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 10), min_size=len(shape), max_size=len(shape)))
    array = np.zeros(shape)
    cut = lrt.tiles(array, *sizes)
    assert cut.shape == tuple(-(-n // size) for n, size in zip(shape, sizes, strict=True))
    for tile in cut.flat:
        assert tile.base is array
        assert all(n <= size for n, size in zip(tile.shape, sizes, strict=True))
        tile += 1
    assert (array == 1).all()


def test_one_size_serves_every_axis() -> None:
    cut = lrt.tiles(np.arange(12).reshape(3, 4), 2)
    assert cut.shape == (2, 2)
    assert cut[1, 1].tolist() == [[10, 11]]


def test_tiles_of_nothing() -> None:
    assert lrt.tiles(np.zeros((0, 4)), 2).shape == (0, 2)


@pytest.mark.parametrize(
    ("array", "sizes", "message"),
    [
        ([1, 2], (1,), "at least one axis"),
        (np.float64(1.0), (1,), "at least one axis"),
        (np.zeros(()), (1,), "at least one axis"),
        (np.zeros((2, 2)), (), "do not fit"),
        (np.zeros((2, 2)), (1, 1, 1), "do not fit"),
        (np.zeros((2, 2)), (0,), "do not fit"),
    ],
)
def test_tiles_that_cannot_be_cut(array: Any, sizes: tuple[Any, ...], message: str) -> None:
    with pytest.raises(lrt.UsageError, match=message):
        lrt.tiles(array, *sizes)
