"""The energy of GPUs: counted, or added up from their power; what keeps it from being so."""

from __future__ import annotations

import sys

import pytest

from legato_rt.devices.nvml import REMEDIES, NvmlDriver, bus_ids
from legato_rt.energy import ConstantPower, EnergyMeter, Reading
from legato_rt.machine import Device
from tests.helpers import nvml_standin
from tests.helpers.nvml_standin import Gpu, Library
from tests.helpers.powercap import Time

POWER = ConstantPower(350.0, 60.0)
FIRST, SECOND = "0000:41:00.0", "0000:01:00.0"


def gpu(number: int, simulated: bool = False) -> Device:
    return Device(f"cuda:{number}", "cuda", ("cuda",), 2, POWER, simulated=simulated)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    made = Library({FIRST: Gpu(), SECOND: Gpu()})
    monkeypatch.setitem(sys.modules, "pynvml", made.module())
    return made


@pytest.fixture
def time() -> Time:
    return Time()


def driver(time: Time) -> NvmlDriver:
    return NvmlDriver(lambda: [FIRST, SECOND], time.clocks)


def meter(time: Time) -> EnergyMeter:
    (found,) = driver(time).open([gpu(0)])
    return found


def test_each_gpu_in_use_has_a_meter(library: Library, time: Time) -> None:
    cpu = Device("cpu", "cpu", ("cpu",), 2, POWER)
    opened = driver(time).open([cpu, gpu(0), gpu(1)])
    assert [(m.name, m.devices) for m in opened] == [
        ("nvml:cuda:0", ("cuda:0",)),
        ("nvml:cuda:1", ("cuda:1",)),
    ]
    for one in opened:
        one.close()
    assert library.users == 0


@pytest.mark.parametrize("devices", [[], [gpu(0, simulated=True)]])
def test_where_no_gpu_is_in_use_the_library_is_left_alone(
    devices: list[Device], time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert NvmlDriver(lambda: pytest.fail("asked")).open(devices) == []


def test_gpus_are_told_apart_by_their_address(library: Library, time: Time) -> None:
    (one,) = driver(time).open([gpu(1)])
    library.gpus[FIRST].energy_mj += 7_000
    library.gpus[SECOND].energy_mj += 9_000
    assert one.read() == Reading(9.0, "measured")


def test_a_gpu_that_counts_need_not_be_sampled(library: Library, time: Time) -> None:
    one = meter(time)
    assert one.period_s is None
    assert one.read() is None, "not counted yet is not zero"
    library.gpus[FIRST].energy_mj += 123_456
    time.awake_s += 1.0
    assert one.read() == Reading(pytest.approx(123.456), "measured")


def test_the_power_of_an_older_gpu_is_added_up(library: Library, time: Time) -> None:
    card = library.gpus[FIRST]
    card.energy_code = nvml_standin.NOT_SUPPORTED
    one = meter(time)
    assert one.period_s is not None
    assert one.period_s <= 0.1
    card.power_mw = 200_000
    time.awake_s += 2.0  # from 100 W to 200 W
    assert one.read() == Reading(pytest.approx(300.0), "measured")
    time.awake_s += 1.0
    time.asleep_s += 3600.0  # in which it drew nothing
    assert one.read() == Reading(pytest.approx(500.0), "measured")
    time.awake_s += 6.0
    assert one.read() is None
    assert "was not read for 6 s" in one.problem


@pytest.mark.parametrize(
    ("energy_code", "power_code", "said"),
    [
        (nvml_standin.NOT_SUPPORTED, nvml_standin.NOT_SUPPORTED, "Not Supported; "),
        (nvml_standin.NO_PERMISSION, nvml_standin.SUCCESS, "an administrator must allow it"),
    ],
)
def test_a_gpu_that_tells_nothing_is_a_problem(
    library: Library, time: Time, energy_code: int, power_code: int, said: str
) -> None:
    card = library.gpus[FIRST]
    card.energy_code, card.power_code = energy_code, power_code
    assert [m.name for m in driver(time).open([gpu(0), gpu(1)])] == ["nvml:cuda:1"]
    (problem,) = driver(time).problems()
    assert problem.startswith("cuda:0: ")
    assert said in problem


@pytest.mark.parametrize("counts", [True, False])
def test_a_gpu_that_is_lost_ends_its_measurement(
    library: Library, time: Time, counts: bool
) -> None:
    card = library.gpus[FIRST]
    card.energy_code = nvml_standin.SUCCESS if counts else nvml_standin.NOT_SUPPORTED
    one = meter(time)
    card.energy_mj += 1
    time.awake_s += 1.0
    assert one.read() is not None
    card.energy_code = card.power_code = nvml_standin.GPU_IS_LOST
    assert one.read() is None
    assert "GPU is lost" in one.problem
    assert "must be restarted" in one.problem


def test_a_count_that_starts_anew_or_stands_ends_the_measurement(
    library: Library, time: Time
) -> None:
    first, second = driver(time).open([gpu(0), gpu(1)])
    library.gpus[FIRST].energy_mj = 3
    time.awake_s += 5.0
    assert (first.read(), second.read()) == (None, None)
    assert "started anew" in first.problem
    assert "stands still for 5 s" in second.problem


def test_without_the_vendors_module(time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert driver(time).open([gpu(0)]) == []
    (problem,) = driver(time).problems()
    assert "pip install 'legato_rt[cuda]'" in problem


def test_without_a_driver(library: Library, time: Time) -> None:
    library.init_code = nvml_standin.LIBRARY_NOT_FOUND
    assert driver(time).open([gpu(0)]) == []
    (problem,) = driver(time).problems()
    assert "install the vendor's driver" in problem
    assert bus_ids("libno-such-driver.so.1") == []


def test_no_problem_where_all_is_well(library: Library, time: Time) -> None:
    assert driver(time).problems() == []
    assert library.users == 0


def test_the_stand_in_says_what_the_vendors_module_says() -> None:
    real = pytest.importorskip("pynvml")
    names = vars(Library().module())
    assert [name for name in names if name[:4].lower() == "nvml" and not hasattr(real, name)] == []
    codes = {
        name: value
        for name, value in vars(nvml_standin).items()
        if name.isupper() and isinstance(value, int)
    }
    assert len(codes) == 7
    for name, value in codes.items():
        assert getattr(real, "NVML_SUCCESS" if not value else f"NVML_ERROR_{name}") == value
    for code, text in nvml_standin.TEXTS.items():
        assert str(real.NVMLError(code)) == text
    known = {value for name, value in vars(real).items() if name.startswith("NVML_ERROR_")}
    assert known.issuperset(REMEDIES)


def test_the_real_module_without_a_driver_is_a_problem(time: Time) -> None:
    real = pytest.importorskip("pynvml")
    try:
        real.nvmlInit()
    except real.NVMLError:
        (problem,) = driver(time).problems()
        assert "must" in problem
    else:
        real.nvmlShutdown()
        pytest.skip("this machine has a driver")


@pytest.mark.gpu
def test_a_real_gpu_counts_its_joules() -> None:
    pytest.importorskip("pynvml")
    (one,) = NvmlDriver().open([gpu(0)])
    try:
        reading = None
        while reading is None and not one.problem:
            reading = one.read()
    finally:
        one.close()
    assert reading is not None, one.problem
    assert reading.joules > 0
