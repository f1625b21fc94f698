"""The contract of device drivers on all that ship, and that it finds what is wrong with others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from legato_rt.backend import Backend, Session
from legato_rt.devices import cpu, cuda, null, opencl, opencl_discovery, simulated
from legato_rt.errors import DeviceError
from legato_rt.machine import Device
from legato_rt.testing import BACKEND_CHECKS, check_backend
from legato_rt.testing import backends as contract
from tests.helpers import cupy_standin

NAMES = [
    "cpu",
    "simulated",
    "null",
    "opencl",
    "fpga",
    "cuda stand-in",
    pytest.param("cuda", marks=pytest.mark.gpu),
]

VIEWS = contract.VIEWS


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
                stand_in: Any = cuda.backend
                yield stand_in
        else:
            found: dict[str, Any] = {
                "cpu": cpu.backend,
                "simulated": simulated.backend,
                "null": null.backend,
                "opencl": opencl.backend,
                "fpga": opencl.fpga_backend,
                "cuda": cuda.backend,
            }
            yield found[name]
    opencl_discovery.devices.cache_clear()


@pytest.fixture
def devices(backend: Backend) -> list[Device]:
    found = [d for d in backend.discover() if "Oclgrind" not in d.detail]
    if not found:
        pytest.skip("; ".join(backend.problems()))
    return found


@pytest.mark.parametrize("check", BACKEND_CHECKS, ids=lambda check: check.__name__)
def test_it_fulfils_the_contract(
    backend: Backend, devices: list[Device], check: Callable[[Backend, Sequence[Device]], None]
) -> None:
    check(backend, devices)


def test_what_hardware_cannot_hold_is_refused(backend: Backend, devices: list[Device]) -> None:
    if backend.kind in ("cpu", "simulated", "null"):
        pytest.skip("it holds everything that NumPy does")
    session = backend.open(devices[0])
    for view in (contract.GRID.astype(">f8"), np.array([{}], object)):
        with pytest.raises(DeviceError, match="cannot be used"):
            session.memory.allocate(view)  # type: ignore[attr-defined]
    session.close()


class Faulty(null.NullBackend):
    """A driver whose memory or session has one method that is wrong."""

    def __init__(self, part: str, name: str, method: Callable[..., Any]) -> None:
        self.part, self.name, self.method = part, name, method

    def open(self, device: Device) -> Session:
        session = super().open(device)
        owner = session.memory if self.part == "memory" else session  # type: ignore[attr-defined]
        setattr(owner, self.name, self.method)
        return session


def flat_download(array: Any, view: Any) -> None:
    """Ignores the strides of the view."""
    span = np.lib.stride_tricks.as_strided(view, (view.size,), (view.itemsize,))
    span[...] = array.ravel()


def silent_call(
    worker: int, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Loses what a variant raises."""
    try:
        return function(*args, **kwargs)
    except KeyError:
        return None


def raw_call(
    worker: int, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Returns the device's own arrays."""
    return function(*args, **kwargs)


@pytest.mark.parametrize(
    ("part", "name", "method"),
    [
        ("memory", "allocate", lambda view: np.empty(view.shape, np.float64)),
        ("memory", "download", flat_download),
        ("memory", "upload", lambda view, array: None),
        ("memory", "copy_from_peer", lambda source, target: None),
        ("memory", "on_worker", lambda array, worker: array * 0),
        ("session", "call", silent_call),
        ("session", "call", raw_call),
    ],
)
def test_what_is_wrong_is_found(part: str, name: str, method: Callable[..., Any]) -> None:
    right: Any = null.NullBackend()
    check_backend(right)
    faulty: Any = Faulty(part, name, method)
    with pytest.raises(AssertionError):
        check_backend(faulty)


def test_a_driver_that_finds_nothing_is_told_apart() -> None:
    driver: Any = null.backend
    with pytest.raises(AssertionError, match="no device of kind null is here"):
        check_backend(driver, [])
