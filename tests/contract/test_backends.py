"""What the runtime expects of a device with a memory of its own, held against every driver."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from legato_rt.backend import Backend, Session
from legato_rt.devices import cuda, null, opencl, opencl_discovery
from legato_rt.errors import DeviceError
from legato_rt.machine import Device
from tests.helpers import cupy_standin

NAMES = ["null", "opencl", "fpga", "cuda stand-in", pytest.param("cuda", marks=pytest.mark.gpu)]

RECORD = np.dtype([("a", "<i4"), ("b", "<f8", (2,))])
GRID = np.arange(120, dtype=np.float64).reshape(10, 12)
VIEWS = {
    "dense": GRID,
    "columns first": np.asfortranarray(GRID),
    "transposed": GRID.T,
    "strided": GRID[1:9:3, ::5],
    "backward": GRID[::-1, ::-2],
    "one column": GRID[:, 3],
    "no element": GRID[:0],
    "no axis": np.array(7.5),
    "single precision": GRID.astype(np.float32),
    "bytes": np.arange(7, dtype=np.uint8),
    "flags": GRID > 30,
    "complex": GRID.astype(np.complex64),
    "records": np.array([(1, (2.0, 3.0)), (4, (5.0, 6.0))], RECORD),
    "a field": np.zeros(5, np.dtype([("x", "<f4"), ("y", "<f4")]))["y"],
}


@pytest.fixture(scope="module", params=NAMES)
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    name = request.param
    with pytest.MonkeyPatch.context() as patch:
        if name in ("opencl", "fpga"):
            pytest.importorskip("pyopencl")
            patch.setenv("LEGATO_RT_OPENCL_PARTS", "2")
            if name == "fpga" and not opencl_discovery.devices("fpga"):
                patch.setenv("LEGATO_RT_FPGA", "pocl")
            opencl_discovery.devices.cache_clear()
        if name == "cuda stand-in":
            with cupy_standin.installed(patch):
                yield cuda.backend
        else:
            yield {
                "null": null.backend,
                "opencl": opencl.backend,
                "fpga": opencl.fpga_backend,
                "cuda": cuda.backend,
            }[name]
    opencl_discovery.devices.cache_clear()


@pytest.fixture
def devices(backend: Backend) -> list[Device]:
    found = [d for d in backend.discover() if "Oclgrind" not in d.detail]
    if not found:
        pytest.skip("; ".join(backend.problems()))
    return found


@pytest.fixture
def session(backend: Backend, devices: list[Device]) -> Iterator[Session]:
    opened = backend.open(devices[0])
    yield opened
    opened.close()


def memory(session: Session) -> Any:
    return session.memory  # type: ignore[attr-defined]


def test_it_is_a_backend(backend: Backend, devices: list[Device]) -> None:
    assert isinstance(backend, Backend)
    assert all(isinstance(text, str) and text for text in backend.problems())
    assert [d.name for d in devices] == [
        d.name for d in backend.discover() if "Oclgrind" not in d.detail
    ]
    for device in devices:
        assert device.kind == backend.kind
        assert device.accepts == backend.runs
        assert device.workers >= 1
        assert device.detail


def test_a_session_says_that_it_has_a_memory(session: Session) -> None:
    assert isinstance(session, Session)
    assert not getattr(session, "direct", False)
    with session.turn:  # type: ignore[attr-defined]
        pass


@pytest.mark.parametrize("name", VIEWS)
def test_a_copy_there_and_back_is_the_same(session: Session, name: str) -> None:
    view = VIEWS[name]
    array = memory(session).allocate(view)
    assert tuple(array.shape) == view.shape
    assert array.dtype == view.dtype
    memory(session).upload(view, array)
    back = np.zeros_like(view, subok=False)
    memory(session).download(array, back)
    np.testing.assert_array_equal(back, view)
    memory(session).free(array)


@pytest.mark.parametrize("name", ["transposed", "strided", "backward", "one column", "a field"])
def test_a_download_touches_the_view_alone(session: Session, name: str) -> None:
    """The bytes between those of a strided view belong to somebody else."""
    view = VIEWS[name]
    array = memory(session).allocate(view)
    memory(session).upload(view + 1, array)
    base = np.full(view.size * 7 + 64, -5, view.dtype)
    into = base[3 : 3 + view.size * 5 : 5].reshape(view.shape)
    into = np.lib.stride_tricks.as_strided(
        base[3:], view.shape, [s * 5 for s in np.zeros(view.shape, view.dtype).strides]
    )
    memory(session).download(array, into)
    np.testing.assert_array_equal(into, view + 1)
    assert (base == -5).sum() == base.size - view.size
    memory(session).free(array)


def test_an_upload_reads_read_only_memory(session: Session) -> None:
    view = GRID[::2, 1:].copy()
    view.flags.writeable = False
    array = memory(session).allocate(view)
    memory(session).upload(view, array)
    back = np.empty_like(view)
    memory(session).download(array, back)
    np.testing.assert_array_equal(back, view)


def test_a_large_copy_arrives_whole(session: Session) -> None:
    """Larger than any buffer that a driver sends copies through, and of odd size."""
    view = np.arange(3_000_001, dtype=np.float64)[::-1]
    array = memory(session).allocate(view)
    memory(session).upload(view, array)
    back = np.empty(view.size, view.dtype)
    memory(session).download(array, back)
    np.testing.assert_array_equal(back, view)
    memory(session).free(array)


def test_what_it_cannot_hold_is_refused(session: Session, backend: Backend) -> None:
    if backend.kind == "null":
        pytest.skip("it holds everything that NumPy does")
    for view in (GRID.astype(">f8"), np.array([{}], object)):
        with pytest.raises(DeviceError, match="cannot be used"):
            memory(session).allocate(view)


@pytest.mark.parametrize("worker", [0, 1])
def test_each_worker_gets_the_same_array(session: Session, worker: int) -> None:
    array = memory(session).allocate(GRID)
    mine = memory(session).on_worker(array, worker)
    memory(session).upload(GRID, array)
    value = session.call(worker, lambda a: a.copy() if isinstance(a, np.ndarray) else a, [mine], {})
    np.testing.assert_array_equal(value, GRID)


def test_arrays_that_a_variant_returns_come_to_the_host(session: Session) -> None:
    array = memory(session).allocate(GRID)
    memory(session).upload(GRID, array)
    mine = memory(session).on_worker(array, 0)
    value = session.call(0, lambda a, *, n: {"a": [a, (a, n)]}, [mine], {"n": 3})
    assert value["a"][1][1] == 3
    memory(session).upload(GRID + 1, array)
    for found in (value["a"][0], value["a"][1][0]):
        assert isinstance(found, np.ndarray)
        np.testing.assert_array_equal(found, GRID)


def test_what_a_variant_raises_comes_through(session: Session) -> None:
    def fails() -> None:
        raise KeyError("its own")

    with pytest.raises(KeyError, match="its own"):
        session.call(0, fails, [], {})
    assert session.call(0, lambda: 5, [], {}) == 5


def test_copies_between_two_devices(backend: Backend, devices: list[Device]) -> None:
    one, two = backend.open(devices[0]), backend.open(devices[-1])
    source, target = memory(one).allocate(GRID.T), memory(two).allocate(GRID.T)
    memory(one).upload(GRID.T, source)
    memory(two).copy_from_peer(source, target)
    back = np.empty(GRID.T.shape)
    memory(two).download(target, back)
    np.testing.assert_array_equal(back, GRID.T)
    nothing = GRID[:0]
    memory(two).copy_from_peer(memory(one).allocate(nothing), memory(two).allocate(nothing))
    one.close()
    two.close()


def test_one_worker_copies_while_the_other_computes(session: Session) -> None:
    """A copy needs no turn: it gets through although a variant does not end before it has."""
    copied = threading.Event()
    array = memory(session).allocate(GRID)

    def copy() -> None:
        memory(session).upload(GRID, array)
        copied.set()

    thread = threading.Thread(target=copy)

    def variant() -> bool:
        thread.start()
        return copied.wait(30)

    with session.turn:  # type: ignore[attr-defined]
        assert session.call(0, variant, [], {})
    thread.join()
