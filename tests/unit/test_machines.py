"""Machine descriptions: those that ship, files of one's own, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

import legato_rt as lrt
from bench import schedule_data
from legato_rt import machine_file
from legato_rt.machine import HOST, Device, Machine, OperatingPoint

BOARD = """
name = "board"

[[device]]
name = "cpu"
kind = "cpu"
workers = 4
active_w = 8.0
idle_w = 1.0

[[device]]
name = "gpu"
count = 2
kind = "cuda"
workers = 1
active_w = 200.0
idle_w = 20.0

[[device.point]]
name = "nominal"

[[device.point]]
name = "slow"
speed = 0.5
power = 0.25

[[device.point]]
name = "given"
active_w = 99.0
frequency_hz = 1.0e9

[[link]]
from = "host"
to = "gpu:0"
both_ways = true
bytes_per_s = 1.0e9
latency_s = 1.0e-3
joules_per_byte = 1.0e-9

[[link]]
from = "gpu:1"
to = "host"
bytes_per_s = 2.0e9
latency_s = 2.0e-3
"""


@pytest.fixture
def board(tmp_path: Path) -> Machine:
    path = tmp_path / "board.toml"
    path.write_text(BOARD, encoding="utf-8")
    return Machine.from_toml(path)


def test_a_file_of_ones_own(board: Machine) -> None:
    assert board.name == "board"
    assert [device.name for device in board.devices] == ["cpu", "gpu:0", "gpu:1"]
    cpu, first, _ = board.devices
    assert (cpu.memory, cpu.accepts, cpu.points) == (HOST, ("cpu",), ())
    assert first.memory == "gpu:0"
    assert first.points == (
        OperatingPoint("nominal", 1.0, 200.0),
        OperatingPoint("slow", 0.5, 50.0),
        OperatingPoint("given", 1.0, 99.0, 1e9),
    )
    assert first.point("slow").active_w == 50.0
    assert cpu.point().active_w == 8.0


def test_transfers_go_by_the_host_where_there_is_no_direct_link(board: Machine) -> None:
    assert board.transfer_s(1e9, HOST, HOST) == 0.0
    assert board.transfer_s(1e9, HOST, "gpu:0") == pytest.approx(1.001)
    assert board.transfer_s(1e9, "gpu:1", "gpu:0") == pytest.approx(0.502 + 1.001)
    assert [link.target for link in board.route("gpu:1", "gpu:0")] == [HOST, "gpu:0"]
    assert board.route("gpu:0", "gpu:1") == ()
    assert board.transfer_j(1e9, HOST, "gpu:0") == pytest.approx(1.0)
    assert board.transfer_j(1e9, "gpu:1", "gpu:0") is None
    per_byte, latency = board.transfers([HOST, "gpu:0"])
    assert per_byte.tolist() == [[0.0, 1e-9], [1e-9, 0.0]]
    assert latency.tolist() == [[0.0, 1e-3], [1e-3, 0.0]]


def test_a_selection_keeps_the_links(board: Machine) -> None:
    assert board.select("cuda").links == board.links
    assert board.with_workers("cpu", 2).name == "board"


@pytest.mark.parametrize(
    ("old", "new", "place", "problem"),
    [
        ("workers = 4", "workers = 0", "device[0].workers", "Expected `int` >= 1"),
        ("workers = 4", "wrokers = 4", "device[0]", "unknown field `wrokers`"),
        ("active_w = 8.0", "active_w = '8'", "device[0].active_w", "Expected `float`"),
        ("idle_w = 1.0", "idle_w = 9.0", "device[0].idle_w", "is more than active_w"),
        ('name = "cpu"', 'name = "gpu:1"', "device[1].name", "'gpu' is there twice"),
        ('name = "slow"', 'name = "given"', "device[1].point", "two points have one name"),
        ('to = "gpu:0"', 'to = "gpu:7"', "link[0]", "no memory 'gpu:7'; there is gpu:0, gpu:1"),
        ('name = "nominal"', 'name = "n"\nspeed = 2.0', "device[1].point[0].speed", "is 1"),
        ("[[link]]", "[[link", "", "is not valid TOML"),
    ],
)
def test_what_is_wrong_is_named(
    tmp_path: Path, old: str, new: str, place: str, problem: str
) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(BOARD.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(lrt.FormatError) as caught:
        Machine.from_toml(path)
    assert caught.value.place == place
    assert problem in caught.value.problem
    assert str(caught.value).startswith(str(path))


def test_a_name_that_does_not_ship_is_told_what_does() -> None:
    with pytest.raises(lrt.FormatError, match="cray: no such machine ships; there is arm-tx2"):
        Machine.from_toml("cray")
    with pytest.raises(lrt.FormatError, match="cannot be read"):
        Machine.from_toml("nowhere/cray.toml")
    with pytest.raises(lrt.SettingError, match="cpu has no operating point 'fast'"):
        Machine.from_toml("xeon").devices[0].point("fast")


SHIPPED = ("arm-tx2-zcu102", "laptop", "mirage", "sirocco", "xeon", "xeon-h200")


def test_the_machines_that_ship() -> None:
    assert tuple(Machine.shipped()) == SHIPPED


@pytest.mark.parametrize("name", SHIPPED)
def test_every_number_of_a_shipped_machine_has_a_source(name: str) -> None:
    read = machine_file.read_machine(name)
    assert read.name == name
    numbers = ("active_w", "idle_w", "workers", "cores", "memory_bytes", "flops_per_s", "count")
    for device in read.device:
        given = {number for number in numbers if getattr(device, number) is not None}
        assert given <= set(device.sources), device.name
        assert device.costs
        assert all(point.source for point in device.point)
    assert all(link.source for link in read.link)


@pytest.mark.parametrize("name", SHIPPED)
def test_every_memory_of_a_shipped_machine_is_reached(name: str) -> None:
    machine = Machine.from_toml(name)
    for device in machine.devices:
        assert device.memory == HOST or machine.route(HOST, device.memory)
        assert device.memory == HOST or machine.route(device.memory, HOST)


def test_discovery_finds_the_cores() -> None:
    machine = Machine.discover()
    assert machine.devices[0].kind == "cpu"
    assert [d.kind for d in Machine.discover({"cpu"}).devices] == ["cpu"]


UNITS = {
    "mirage": {"cpu": "cpu_core", "cuda:0": "gpu"},
    "sirocco": {"cpu": "cpu_core", "cuda:0": "gpu"},
    "vision_board": {"arm": "arm_a57", "gpu": "gpu_tx2", "fpga": "fpga_zcu102"},
}


@pytest.mark.parametrize("name", UNITS)
def test_watts_are_those_of_the_table(name: str) -> None:
    try:
        table = schedule_data.watts(name)
    except schedule_data.MissingData as missing:
        pytest.skip(str(missing))
    machine = Machine.from_toml("arm-tx2-zcu102" if name == "vision_board" else name)
    devices: dict[str, Device] = {device.name: device for device in machine.devices}
    for device, unit in UNITS[name].items():
        given: dict[str, Any] = {point: row for (u, point), row in table.items() if u == unit}
        power = devices[device].power
        assert (power.active_w, power.idle_w) == (
            given["nominal"].active_w,
            given["nominal"].idle_w,
        )
        for point in devices[device].points:
            row = given[point.name]
            assert (point.speed, point.active_w) == (row.speed, row.active_w * row.power)
