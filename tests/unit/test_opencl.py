"""The OpenCL driver on PoCL: its errors, its programs and binaries, and how devices are found."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from legato_rt.devices import icd, opencl_discovery
from legato_rt.devices.compiler_log import quoted
from legato_rt.errors import (
    BuildError,
    DeviceError,
    DeviceLost,
    DeviceOutOfMemory,
    SettingError,
)
from legato_rt.machine import Device

cl = pytest.importorskip("pyopencl")

from legato_rt.devices import opencl  # noqa: E402
from legato_rt.devices.opencl_errors import translate  # noqa: E402

DOUBLE = "kernel void twice(global float *x) { x[get_global_id(0)] *= 2; }"
WRONG = "kernel void k(global float *x) {\n    float y = 1;\n    x[0] = y + unknown;\n}\n"


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    device = real()
    opened = opencl.backend.open(device)
    yield opened
    opened.close()


@pytest.fixture
def queue(session: Any) -> Any:
    return session.queues[0]


@pytest.fixture
def ones(session: Any) -> Any:
    array = session.memory.allocate(np.ones(64, np.float32))
    session.memory.upload(np.ones(64, np.float32), array)
    return array


def real() -> Device:
    found = [d for d in opencl.backend.discover() if not d.simulated]
    if not found:
        pytest.skip("; ".join(opencl.backend.problems()))
    return found[0]


# -- errors -------------------------------------------------------------------------------------


def test_a_build_failure_has_log_and_source_line(session: Any, queue: Any) -> None:
    def variant() -> None:
        opencl.program(queue, WRONG)

    with pytest.raises(BuildError, match="unknown") as caught:
        session.call(0, variant, [], {})
    assert "line 3:     x[0] = y + unknown;" in str(caught.value)


def test_so_has_one_of_a_program_that_the_variant_builds_itself(session: Any, queue: Any) -> None:
    with pytest.raises(BuildError, match=r"line 3:     x\[0\] = y \+ unknown;"):
        session.call(0, lambda: cl.Program(queue.context, WRONG).build(), [], {})


def test_an_unknown_kernel_is_a_device_error(queue: Any) -> None:
    with pytest.raises(DeviceError, match="KERNEL_NAME"):
        opencl.kernel(queue, "thrice", source=DOUBLE)


@pytest.mark.parametrize(
    ("items", "group", "asked"),
    [
        ((64,), (7,), r"asked: \(64,\) items in groups of \(7,\)"),
        ((1 << 20,), (1 << 20,), r"asked: \(1048576,\) items in groups of \(1048576,\)"),
        ((2, 2, 2, 2), None, r"asked: \(2, 2, 2, 2\) items"),
    ],
)
def test_a_wrong_work_size_says_what_was_asked_and_is_allowed(
    session: Any, queue: Any, ones: Any, items: Any, group: Any, asked: str
) -> None:
    twice = opencl.kernel(queue, "twice", source=DOUBLE)
    with pytest.raises(DeviceError, match=asked) as caught:
        session.call(0, lambda: twice(queue, items, group, ones.base_data), [], {})
    assert "twice" in str(caught.value)
    assert f"allowed: {queue.device.max_work_group_size} items a group" in str(caught.value)


def test_an_array_too_large_is_out_of_memory(session: Any) -> None:
    most = session.queues[0].device.max_mem_alloc_size
    view = np.broadcast_to(np.uint8(0), (most + 1,))
    with pytest.raises(DeviceOutOfMemory, match=f"{most + 1} bytes, {most} at most"):
        session.memory.allocate(view)


def test_so_is_one_that_a_variant_makes(session: Any, queue: Any) -> None:
    def variant() -> None:
        flags = cl.mem_flags.READ_WRITE
        cl.Buffer(queue.context, flags, queue.device.max_mem_alloc_size + 1)

    with pytest.raises(DeviceOutOfMemory, match="allowed"):
        session.call(0, variant, [], {})


class Coded(Exception):
    """One of PyOpenCL's errors, as far as its code goes: some cannot be provoked here."""

    def __init__(self, code: int) -> None:
        super().__init__(f"code {code}")
        self.code = code


@pytest.mark.parametrize(
    ("code", "kind"),
    [(-2, DeviceLost), (-36, DeviceLost), (-5, DeviceOutOfMemory), (-42, BuildError)],
)
def test_codes_that_cannot_be_provoked(queue: Any, code: int, kind: type[Exception]) -> None:
    assert type(translate(Coded(code), queue.device)) is kind


@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("error: /root/kcache/tempfile_N6.cl:2:7: use of undeclared identifier", "line 2: two"),
        ("Compilation started\n1:3:1: error: expected", "line 3: three"),
        ("/tmp/a/kern.cu(1): error: identifier", "line 1: one"),
        ("warning: a.cl:1:1: unknown\nerror: a.cl:2:5: undeclared", "line 2: two"),
        ("error: nothing is said about where", ""),
        ("error: x.cl:9:1: beyond the end", ""),
    ],
)
def test_the_line_that_a_log_complains_of(log: str, line: str) -> None:
    assert quoted(log, "one\ntwo\nthree").partition("\n")[2].partition("\n")[0] == line
    assert quoted(log, None) == ""


# -- programs -----------------------------------------------------------------------------------


def test_a_program_is_built_once(queue: Any) -> None:
    threads = []
    found: list[Any] = []
    for _ in range(4):
        threads.append(threading.Thread(target=lambda: found.append(opencl.program(queue, DOUBLE))))
        threads[-1].start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(program is found[0] for program in found)
    other = opencl.backend.open(real())
    assert opencl.program(other.queues[1], DOUBLE) is found[0]  # type: ignore[attr-defined]
    other.close()


def test_a_kernel_belongs_to_a_thread(queue: Any) -> None:
    found = [opencl.kernel(queue, "twice", source=DOUBLE) for _ in range(2)]
    thread = threading.Thread(
        target=lambda: found.append(opencl.kernel(queue, "twice", source=DOUBLE))
    )
    thread.start()
    thread.join()
    assert found[0] is found[1]
    assert found[2] is not found[0]


def test_a_binary_is_made_once_and_loaded_from_then_on(
    queue: Any, ones: Any, tmp_path: Path
) -> None:
    text = tmp_path / "twice.cl"
    text.write_text(DOUBLE, encoding="utf-8")
    binary = tmp_path / "sub" / "twice-{device}.bin"
    opencl.program(queue, text, binary)
    (made,) = (tmp_path / "sub").iterdir()
    assert made.name == f"twice-{opencl.slug(queue.device.name)}.bin"
    copy = tmp_path / "prebuilt.bin"
    copy.write_bytes(made.read_bytes())
    twice = opencl.kernel(queue, "twice", binary=copy)
    twice(queue, (64,), None, ones.base_data)
    np.testing.assert_array_equal(ones.get(), np.full(64, 2, np.float32))


def test_a_binary_of_something_else_is_refused(queue: Any, tmp_path: Path) -> None:
    path = tmp_path / "foreign.aocx"
    path.write_bytes(b"for another device")
    with pytest.raises(BuildError, match=r"foreign\.aocx cannot be used on"):
        opencl.program(queue, binary=path)


def test_nothing_to_build_from_is_said(queue: Any, tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"none\.aocx is not there, and there is no source"):
        opencl.program(queue, binary=tmp_path / "none.aocx")
    with pytest.raises(BuildError, match="there is no source"):
        opencl.program(queue)


# -- which devices there are --------------------------------------------------------------------


@pytest.fixture
def anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Have devices looked for anew, in this test and after it."""
    real()
    opencl_discovery.devices.cache_clear()
    yield monkeypatch
    monkeypatch.undo()
    opencl_discovery.devices.cache_clear()


def test_a_device_can_be_declared_an_fpga(anew: pytest.MonkeyPatch) -> None:
    name = real().detail.partition(" (")[0]
    opencl_discovery.devices.cache_clear()
    anew.setenv("LEGATO_RT_FPGA", "PoCL")
    found = [d for d in opencl.fpga_backend.discover() if name in d.detail]
    assert found
    for device in found:
        assert device.kind == "fpga"
        assert device.accepts == ("fpga", "opencl")
        assert "emulated" in device.detail
        assert device.simulated
    assert not [d for d in opencl.backend.discover() if name in d.detail]


def test_a_machine_file_may_call_it_an_fpga() -> None:
    device = real()
    declared = Device(device.name, "fpga", ("fpga", "opencl"), 2, device.power)
    session: Any = opencl.fpga_backend.open(declared)
    assert session.call(0, lambda: 1, [], {}) == 1
    session.close()


def test_what_matches_no_device_is_a_problem(anew: pytest.MonkeyPatch) -> None:
    if opencl_discovery.devices("fpga"):
        pytest.skip("there is an FPGA here")
    anew.setenv("LEGATO_RT_FPGA", "no such thing")
    opencl_discovery.devices.cache_clear()
    assert any("no such thing" in text for text in opencl.fpga_backend.problems())


def test_parts_share_the_units_of_a_device(anew: pytest.MonkeyPatch) -> None:
    whole = [d for d in opencl_discovery.devices("opencl").values() if d.max_compute_units > 1]
    whole = [d for d in whole if not opencl_discovery.is_checker(d)]
    if not whole:
        pytest.skip("a device with two units is needed")
    opencl_discovery.devices.cache_clear()
    anew.setenv("LEGATO_RT_OPENCL_PARTS", "2")
    parts = [d for d in opencl_discovery.devices("opencl").values() if opencl_discovery.parent(d)]
    assert len(parts) >= 2
    assert parts[0].max_compute_units == whole[0].max_compute_units // 2
    described = [d for d in opencl.backend.discover() if " units" in d.detail]
    sessions: list[Any] = [opencl.backend.open(d) for d in described[:2]]
    # A queue that is not told its part gets the whole device from PoCL.
    assert [q.device for s in sessions for q in s.queues] == [
        part for part in parts[:2] for _ in range(2)
    ]
    for session in sessions:
        session.close()


@pytest.mark.parametrize("text", ["0", "two", "-1"])
def test_parts_are_a_whole_number(anew: pytest.MonkeyPatch, text: str) -> None:
    anew.setenv("LEGATO_RT_OPENCL_PARTS", text)
    with pytest.raises(SettingError, match="LEGATO_RT_OPENCL_PARTS"):
        opencl.backend.discover()


def test_a_checker_is_never_used_unless_asked_for() -> None:
    checkers = [d for d in opencl.backend.discover() if "Oclgrind" in d.detail]
    assert all(device.simulated for device in checkers)


def test_a_device_that_is_gone_is_named() -> None:
    gone = Device("opencl:99", "opencl", ("opencl",), 2, opencl.POWER["cpu"])
    with pytest.raises(SettingError, match="opencl:99"):
        opencl.backend.open(gone)


# -- the emulator's files -----------------------------------------------------------------------


def test_the_folder_for_the_loader_is_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(icd.platformdirs, "user_cache_path", lambda name: tmp_path / name)
    system = tmp_path / "vendors"
    system.mkdir()
    (system / "vendor.icd").write_text("libvendor.so\n", encoding="utf-8")
    texts = icd._texts(Path("/lib/emulator.so"), system)
    folder = icd._folder(texts)
    assert {p.name: p.read_text(encoding="utf-8") for p in folder.iterdir()} == texts
    assert "libvendor.so\n" in texts.values()
    assert "/lib/emulator.so\n" in texts.values()
    assert icd._folder(texts) == folder
    assert [p.name for p in folder.parent.iterdir()] == [folder.name]


def test_a_cache_that_cannot_be_written_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    monkeypatch.setattr(icd.platformdirs, "user_cache_path", lambda name: blocked / name)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = icd._folder({"a.icd": "x\n"})
    assert folder.parent == tmp_path
    assert [p.name for p in folder.iterdir()] == ["a.icd"]


# -- hardware without a driver ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "has_gpu", "allowed", "said"),
    [
        ((), False, True, None),
        (("dri/renderD128",), True, True, None),
        (("dri/renderD128",), False, True, "without an OpenCL driver"),
        (("dri/renderD128", "kfd"), False, False, "usermod -aG render,video"),
    ],
)
def test_what_is_said_of_idle_hardware(
    tmp_path: Path, nodes: tuple[str, ...], has_gpu: bool, allowed: bool, said: str | None
) -> None:
    for node in nodes:
        (tmp_path / node).parent.mkdir(exist_ok=True)
        (tmp_path / node).touch()

    def may_use(path: Path, mode: int) -> bool:
        assert mode == os.R_OK | os.W_OK
        return allowed

    found = opencl_discovery.idle_hardware(tmp_path, has_gpu, may_use)
    assert (said is None) == (not found)
    assert said is None or said in found[0]
