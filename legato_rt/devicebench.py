"""How fast devices copy and compute, as ``legato devices --bench`` shows.

A device is measured through the session that a runtime would use: one worker, and what the driver
adds to each copy and each call.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from legato_rt.backend import DeviceMemory, Session, backends
from legato_rt.errors import DeviceError
from legato_rt.machine import Device
from legato_rt.task import Task, Variant

COPY_BYTES = 64 * 1024 * 1024
SIDES = (64, 256, 1024, 2048)
"""Sides of the square matrices that are multiplied, until one product is long enough to time."""

ENOUGH_S = 0.02
SAMPLES = 5


@dataclass(frozen=True)
class DeviceSpeed:
    """What one device does; None where it has no such thing.

    Attributes
    ----------
    upload_gb_s, download_gb_s : float or None
        Bandwidth to and from its memory, in 10⁹ bytes a second; None if that is the host's.
    gflop_s : float or None
        Speed of the product of two float32 matrices, in 10⁹ operations a second.
    product : str
        The variant of the product, and the size of the matrices.
    label : str
        ``measured``, ``simulated`` where no such hardware is behind the device, or ``failed``.
    error : str
        What the device failed with.
    """

    upload_gb_s: float | None
    download_gb_s: float | None
    gflop_s: float | None
    product: str
    label: str
    error: str = ""


def device_speed(device: Device, product: Task[..., Any] | None) -> DeviceSpeed:
    """Measure a device.

    Parameters
    ----------
    device : Device
    product : Task or None
        Takes matrices a, b and c, and adds a·b to c.
    """
    label = "simulated" if device.simulated else "measured"
    up = down = rate = None
    name = error = ""
    try:
        with contextlib.closing(backends()[device.kind].open(device)) as session:
            memory: DeviceMemory | None = getattr(session, "memory", None)
            if memory is not None:
                up, down = _copies(memory)
            if product is not None:
                rate, name = _product(session, memory, device, product)
    except DeviceError as failure:
        label, error = "failed", str(failure)
    return DeviceSpeed(up, down, rate, name, label, error)


def _copies(memory: DeviceMemory) -> tuple[float, float]:
    host = np.ones(COPY_BYTES, np.uint8)
    there = memory.allocate(host)
    try:
        up = _seconds(lambda: memory.upload(host, there))
        down = _seconds(lambda: memory.download(there, host))
    finally:
        memory.free(there)
    return COPY_BYTES / up / 1e9, COPY_BYTES / down / 1e9


def _product(
    session: Session, memory: DeviceMemory | None, device: Device, product: Task[..., Any]
) -> tuple[float | None, str]:
    rate, name = None, ""
    for side in SIDES:
        arrays = [np.ones((side, side), np.float32) for _ in range(3)]
        variant = _preferred(product, device, arrays)
        if variant is None:
            break
        seconds = _product_s(session, memory, variant, arrays)
        rate = 2 * side**3 / seconds / 1e9
        name = f"{variant.name}, {side} × {side} float32"
        if seconds > ENOUGH_S:
            break
    return rate, name


def _preferred(product: Task[..., Any], device: Device, args: list[Any]) -> Variant | None:
    """The last variant that the device runs and that takes the arguments, as in a runtime."""
    for kind in device.accepts:
        for variant in reversed(product.variants):
            if variant.kind == kind and (variant.when is None or variant.when(*args)):
                return variant
    return None


def _product_s(
    session: Session,
    memory: DeviceMemory | None,
    variant: Variant,
    arrays: list[npt.NDArray[Any]],
) -> float:
    if memory is None:
        return _seconds(lambda: session.call(0, variant.function, arrays, {}))
    with contextlib.ExitStack() as stack:
        args = []
        for array in arrays:
            there = memory.allocate(array)
            stack.callback(memory.free, there)
            memory.upload(array, there)
            args.append(memory.on_worker(there, 0))
        return _seconds(lambda: session.call(0, variant.function, args, {}))


def _seconds(call: Callable[[], object]) -> float:
    """Median of some calls; the first one compiles or touches memory, and does not count."""
    call()
    found = []
    for _ in range(SAMPLES):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return statistics.median(found)
