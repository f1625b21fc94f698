"""The contract of device drivers, held on the devices that are there."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from legato_rt.backend import Backend, Session
from legato_rt.errors import DeviceError
from legato_rt.machine import Device
from legato_rt.testing.stage import expect

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
"""What every driver must copy there and back."""


def check_backend(backend: Backend, devices: Sequence[Device] | None = None) -> None:
    """Hold a driver to its contract.

    Parameters
    ----------
    backend : Backend
    devices : sequence of Device, optional
        By default all that it discovers, of which there must be one.

    Raises
    ------
    AssertionError
        Saying what the driver did.
    """
    found = backend.discover() if devices is None else devices
    expect(found, f"no device of kind {backend.kind} is here: {'; '.join(backend.problems())}")
    for check in BACKEND_CHECKS:
        check(backend, found)


def it_describes_its_devices(backend: Backend, devices: Sequence[Device]) -> None:
    """Twice in the same way, with names of their own."""
    expect(isinstance(backend, Backend), "it lacks a part of legato_rt.backend.Backend")
    told = backend.problems()
    expect(all(told), "a problem is told in words")
    first, second = ([d.name for d in backend.discover()] for _ in range(2))
    expect(first == second, f"it finds {first}, and then {second}")
    expect(len(set(first)) == len(first), f"two devices have one name: {first}")
    for device in devices:
        expect(device.kind == backend.kind, f"{device.name} is of kind {device.kind}")
        expect(device.accepts == backend.runs, f"{device.name} accepts {device.accepts}")
        expect(device.workers >= 1, f"{device.name} has no worker")
        expect(device.detail, f"{device.name} does not say what it is")


def it_opens_twice(backend: Backend, devices: Sequence[Device]) -> None:
    """Two runtimes use a device at once, and one closes first."""
    one, two = backend.open(devices[0]), backend.open(devices[0])
    expect(isinstance(one, Session), "it lacks a part of legato_rt.backend.Session")
    one.close()
    expect(two.call(0, lambda: 5, [], {}) == 5, "a session works after another is closed")
    two.close()
    with _opened(backend, devices) as session:
        expect(session.call(0, lambda: 6, [], {}) == 6, "a device opens again")


def it_calls(backend: Backend, devices: Sequence[Device]) -> None:
    """Arguments, values and errors go through, on each worker."""

    def fails() -> None:
        raise KeyError("its own")

    with _opened(backend, devices) as session:
        for worker in range(min(devices[0].workers, 4)):
            value = session.call(worker, lambda a, *, n: {"a": [a, (n,)]}, [2], {"n": 3})
            expect(value == {"a": [2, (3,)]}, f"worker {worker} returns {value}")
            try:
                session.call(worker, fails, [], {})
            except KeyError as error:
                expect(error.args == ("its own",), f"the error of a variant became {error!r}")
            else:
                expect(False, "the error of a variant is lost")


def copies_there_and_back_are_the_same(backend: Backend, devices: Sequence[Device]) -> None:
    """Arrays of all strides, shapes and types; also memory that is read-only."""
    with _opened(backend, devices) as session:
        for memory in _memories(session):
            for name, view in VIEWS.items():
                source = view.view()
                source.flags.writeable = False
                array = memory.allocate(source)
                expect(tuple(array.shape) == view.shape, f"{name}: shape {array.shape}")
                expect(array.dtype == view.dtype, f"{name}: type {array.dtype}")
                memory.upload(source, array)
                back = np.zeros_like(view, subok=False)
                memory.download(array, back)
                _equal(back, view, name)
                memory.free(array)


def downloads_touch_the_view_alone(backend: Backend, devices: Sequence[Device]) -> None:
    """The bytes between those of a strided view belong to somebody else."""
    with _opened(backend, devices) as session:
        for memory in _memories(session):
            for name in ("transposed", "strided", "backward", "one column", "a field"):
                view = VIEWS[name]
                array = memory.allocate(view)
                memory.upload(view + 1, array)
                base = np.full(view.size * 7 + 64, -5, view.dtype)
                strides = [s * 5 for s in np.zeros(view.shape, view.dtype).strides]
                into = np.lib.stride_tricks.as_strided(base[3:], view.shape, strides)
                memory.download(array, into)
                _equal(into, view + 1, name)
                others = (base == -5).sum()
                expect(others == base.size - view.size, f"{name}: bytes of others are overwritten")
                memory.free(array)


def large_copies_arrive_whole(backend: Backend, devices: Sequence[Device]) -> None:
    """Larger than any buffer that a driver sends copies through, and of odd size."""
    with _opened(backend, devices) as session:
        for memory in _memories(session):
            view = np.arange(3_000_001, dtype=np.float64)[::-1]
            array = memory.allocate(view)
            memory.upload(view, array)
            back = np.empty(view.size, view.dtype)
            memory.download(array, back)
            _equal(back, view, "3,000,001 numbers")
            memory.free(array)


def what_it_cannot_hold_is_refused(backend: Backend, devices: Sequence[Device]) -> None:
    """With a `DeviceError`, so that the task runs elsewhere; and it goes on after that."""
    with _opened(backend, devices) as session:
        for memory in _memories(session):
            for view in (GRID.astype(">f8"), np.array([{}], object)):
                with contextlib.suppress(DeviceError):
                    memory.free(memory.allocate(view))
            memory.free(memory.allocate(GRID))


def each_worker_gets_the_same_array(backend: Backend, devices: Sequence[Device]) -> None:
    """And an array that a variant returns comes to the host, as it is at that time."""
    with _opened(backend, devices) as session:
        for memory in _memories(session):
            array = memory.allocate(GRID)
            memory.upload(GRID, array)
            found = []
            for worker in range(min(devices[0].workers, 4)):
                mine = memory.on_worker(array, worker)
                value = session.call(worker, lambda a, *, n: {"a": [a, (a, n)]}, [mine], {"n": 3})
                expect(value["a"][1][1] == 3, f"worker {worker} changes what is no array")
                found += [value["a"][0], value["a"][1][0]]
            memory.upload(GRID + 1, array)
            for value in found:
                expect(isinstance(value, np.ndarray), f"a {type(value)} is returned to the host")
                _equal(value, GRID, "what a variant returned")
            memory.free(array)


def copies_between_devices(backend: Backend, devices: Sequence[Device]) -> None:
    """From a peer, which may be the same device; also of nothing."""
    one, two = backend.open(devices[0]), backend.open(devices[-1])
    for ours, other in zip(_memories(two), _memories(one), strict=True):
        for view in (GRID.T, GRID[:0]):
            source, target = other.allocate(view), ours.allocate(view)
            other.upload(view, source)
            ours.copy_from_peer(source, target)
            back = np.empty(view.shape)
            ours.download(target, back)
            _equal(back, view, "a copy from a peer")
            other.free(source)
            ours.free(target)
    one.close()
    two.close()


def copies_need_no_turn(backend: Backend, devices: Sequence[Device]) -> None:
    """One gets through although a variant does not end before it has."""
    with _opened(backend, devices) as session:
        for memory in _memories(session):
            copied = threading.Event()
            array = memory.allocate(GRID)

            def copy(memory: Any = memory, array: Any = array, copied: Any = copied) -> None:
                memory.upload(GRID, array)
                copied.set()

            thread = threading.Thread(target=copy)

            def variant(thread: Any = thread, copied: Any = copied) -> bool:
                thread.start()
                return bool(copied.wait(30))

            with getattr(session, "turn", contextlib.nullcontext()):
                done = session.call(0, variant, [], {})
            thread.join()
            expect(done, "a copy waits for a variant that runs")
            memory.free(array)


@contextlib.contextmanager
def _opened(backend: Backend, devices: Sequence[Device]) -> Iterator[Session]:
    session = backend.open(devices[0])
    try:
        yield session
    finally:
        session.close()


def _memories(session: Session) -> list[Any]:
    """The session's memory, if it has one of its own: then variants are not called directly."""
    memory = getattr(session, "memory", None)
    direct = getattr(session, "direct", False)
    expect(memory is None or not direct, "a session with a memory cannot be direct")
    return [] if memory is None else [memory]


def _equal(found: Any, wanted: Any, what: str) -> None:
    np.testing.assert_array_equal(found, wanted, err_msg=what)


BACKEND_CHECKS: tuple[Callable[[Backend, Sequence[Device]], None], ...] = (
    it_describes_its_devices,
    it_opens_twice,
    it_calls,
    copies_there_and_back_are_the_same,
    downloads_touch_the_view_alone,
    large_copies_arrive_whole,
    what_it_cannot_hold_is_refused,
    each_worker_gets_the_same_array,
    copies_between_devices,
    copies_need_no_turn,
)
"""Each is called with a driver and its devices."""
