"""What of the CUDA driver needs no GPU: errors, the pieces of a copy, what it says is missing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from legato_rt.devices import cuda, cuda_driver
from legato_rt.devices.cuda_errors import translate, translated
from legato_rt.errors import BuildError, DeviceError, DeviceLost, DeviceOutOfMemory, SettingError
from legato_rt.machine import Device
from tests.helpers import cupy_standin
from tests.helpers.views import steps, view

# -- copies -------------------------------------------------------------------------------------


@given(steps, st.integers(8, 200))
def test_pieces_make_up_the_dense_copy(chain: Any, limit: int) -> None:
    array = view(np.arange(120, dtype=np.int64).reshape(4, 5, 6), chain)
    dense = np.zeros(array.nbytes, np.uint8)
    covered = 0
    for offset, piece in cuda.pieces(array, limit):
        assert piece.nbytes <= limit
        assert piece.size == 0 or np.may_share_memory(piece, array)
        content = np.ascontiguousarray(piece).reshape(-1).view(np.uint8)
        dense[offset : offset + piece.nbytes] = content
        covered += piece.nbytes
    assert covered == array.nbytes
    np.testing.assert_array_equal(dense.view(array.dtype).reshape(array.shape), array)


def test_a_dtype_that_cupy_does_not_know_is_refused_clearly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with cupy_standin.installed(monkeypatch):
        session: Any = cuda.backend.open(cuda.backend.discover()[1])
        with pytest.raises(DeviceError, match="CuPy has no arrays of dtype"):
            session.memory.allocate(np.array(["text"]))
        session.close()


def test_a_variant_that_fails_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it launched before may still write to arrays that others are about to get."""
    with cupy_standin.installed(monkeypatch):
        session: Any = cuda.backend.open(cuda.backend.discover()[0])
        done: list[str] = []

        def variant() -> None:
            cupy_standin.here.streams[-1].work.append(lambda: done.append("on the stream"))
            cupy_standin.Stream.null.work.append(lambda: done.append("by default"))
            raise KeyError("its own")

        with pytest.raises(KeyError):
            session.call(1, variant, [], {})
        assert done == ["on the stream", "by default"]
        session.close()


def test_a_gpu_that_is_not_there_is_named() -> None:
    for name in ("cuda:99", "cuda"):
        device = Device(name, "cuda", ("cuda",), 2, cuda.POWER)
        with pytest.raises(SettingError, match=name):
            cuda.backend.open(device)


# -- errors -------------------------------------------------------------------------------------


def runtime_error(code: int) -> Exception:
    """What CuPy raises for a code; itself, where it is installed."""
    cupy = pytest.importorskip("cupy")
    error: Exception = cupy.cuda.runtime.CUDARuntimeError(code)
    return error


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (2, DeviceOutOfMemory),
        (209, BuildError),
        (218, BuildError),
        (700, DeviceLost),
        (719, DeviceLost),
        (1, DeviceError),
        (9, DeviceError),
        (701, DeviceError),
    ],
)
def test_codes_of_cupy(code: int, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="cuda:0") as caught, translated("cuda:0"):
        raise runtime_error(code)
    assert type(caught.value) is kind
    assert ("started anew" in str(caught.value)) == (kind is DeviceLost)


def test_a_wrong_work_size_says_what_was_asked() -> None:
    def launch(grid: tuple[int, ...], block: tuple[int, ...]) -> None:
        raise runtime_error(9)

    with (
        pytest.raises(DeviceError, match=r"asked: grid \(1,\), block \(4096,\); allowed"),
        translated("cuda:0"),
    ):
        launch((1,), (4096,))


def test_memory_errors_of_cupy() -> None:
    cupy = pytest.importorskip("cupy")
    error = cupy.cuda.memory.OutOfMemoryError(100, 50, 120)
    assert type(translate(error, "cuda:0")) is DeviceOutOfMemory


def test_build_errors_of_cupy_have_the_source_line() -> None:
    cupy = pytest.importorskip("cupy")
    source = "extern __global__\nvoid k() {\n  wrong;\n}"
    log = "/tmp/kern.cu(3): error: identifier is undefined"
    error = cupy.cuda.compiler.CompileException(log, source, "kern.cu", (), "nvrtc")
    found = translate(error, "cuda:0")
    assert type(found) is BuildError
    assert "line 3:   wrong;" in str(found)


def test_a_missing_compiler_says_what_to_install() -> None:
    error = RuntimeError("CuPy failed to load libnvrtc.so.12: OSError: not found")
    found = translate(error, "cuda:0")
    assert type(found) is BuildError
    assert "pip install 'legato_rt[cuda]'" in str(found)


def test_other_errors_pass() -> None:
    for error in (KeyError("x"), RuntimeError("of the program"), MemoryError()):
        assert translate(error, "cuda:0") is None


def test_what_the_driver_uses_is_there_in_cupy() -> None:
    """CuPy loads without a GPU, so that at least the names can be held against it."""
    cupy: Any = pytest.importorskip("cupy")
    pointer = cupy.cuda.MemoryPointer
    for name in ("copy_from_host_async", "copy_to_host_async", "copy_from_device_async"):
        assert hasattr(pointer, name)
    for name in ("Device", "Stream", "Event", "alloc_pinned_memory", "PinnedMemoryPointer"):
        assert hasattr(cupy.cuda, name)
    assert hasattr(cupy.cuda.PinnedMemoryPointer, "ptr")
    assert hasattr(cupy.cuda.Stream, "null")
    assert hasattr(cupy.cuda.Stream, "synchronize")
    assert hasattr(cupy.cuda.Event, "record")


# -- what lacks ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (100, "CUDA_VISIBLE_DEVICES"),
        (803, "restart the machine"),
        (999, "nvidia-modprobe"),
        (12345, "error 12345"),
    ],
)
def test_each_answer_of_the_driver_says_what_to_do(tmp_path: Path, code: int, said: str) -> None:
    assert said in cuda_driver.reason(code, tmp_path)


def test_a_device_file_without_permission_is_named(tmp_path: Path) -> None:
    (tmp_path / "nvidiactl").touch()

    def may_use(path: Path, mode: int) -> bool:
        assert mode == os.R_OK | os.W_OK
        return False

    assert str(tmp_path / "nvidiactl") in cuda_driver.reason(100, tmp_path, may_use)
    assert "permission" not in cuda_driver.reason(100, tmp_path, lambda path, mode: True)


def test_no_driver_is_a_problem_and_no_error() -> None:
    found, why = cuda_driver.gpus("libno-such-driver.so.1")
    assert found == []
    assert "libno-such-driver.so.1 is not found" in why
    assert "--gpus all" in why
