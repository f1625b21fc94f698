"""``nvml``: the energy of NVIDIA GPUs, as their driver's management library counts it.

From Volta on a GPU counts its millijoules itself.  An older one says only what it draws, which is
then added up over time.  The library is loaded when a GPU is to be measured, never at import.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from legato_rt.devices.counters import CLOCKS, Clocks, Counter
from legato_rt.devices.cuda_driver import LIBRARY
from legato_rt.energy import EnergyMeter, Reading
from legato_rt.errors import DeviceError
from legato_rt.machine import Device

MILLI = 1e-3
PERIOD_S = 0.1
"""Between two samples of the power; the driver renews its own about as often."""

GAP_S = 5.0
"""Nobody knows what a GPU drew between two samples further apart."""

LIMIT_W = 5000.0
"""No board draws more."""

MISSING = "nvidia-ml-py is not installed: pip install 'legato_rt[cuda]' or 'legato_rt[cuda13]'"

# nvmlReturn_t, and what to do about it.
REMEDIES = {
    3: "this GPU tells neither its energy nor its power: a card of the data centre or a newer one "
    "must be used, and none that is split into instances (MIG)",
    4: "an administrator must allow it: the driver keeps it from this user",
    9: "the kernel module must be loaded: modprobe nvidia",
    12: "install the vendor's driver; a container must be started with its tools passed on: "
    "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
    15: "the GPU is not there any more: the machine must be restarted, or the GPU reset",
    18: "the driver was updated: the machine must be restarted",
}


@contextmanager
def translated(what: str) -> Iterator[Any]:
    """Give the vendor's module, and turn its errors into `DeviceError` with what to do.

    Raises
    ------
    DeviceError
    """
    try:
        import pynvml
    except ImportError as error:
        raise DeviceError(MISSING) from error
    try:
        yield pynvml
    except pynvml.NVMLError as error:
        remedy = REMEDIES.get(error.value, "`nvidia-smi` must work first")
        raise DeviceError(f"{what}: {error}; {remedy}") from error


def bus_ids(library: str = LIBRARY) -> list[str]:
    """PCI addresses of the GPUs, in the order in which CUDA numbers them.

    NVML numbers them by address and shows also those that ``CUDA_VISIBLE_DEVICES`` hides.
    """
    try:
        driver = ctypes.CDLL(library)
    except OSError:
        return []
    count = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return []
    found = []
    for ordinal in range(count.value):
        address = ctypes.create_string_buffer(32)
        driver.cuDeviceGetPCIBusId(address, len(address), ordinal)
        found.append(address.value.decode())
    return found


class PowerIntegral:
    """Joules from what a GPU says it draws: the area under its samples.

    Parameters
    ----------
    what : str
        For messages.
    read_w : callable
        Returns watts.
    clock : callable
        Returns seconds.

    Raises
    ------
    DeviceError
        By ``read_w``.
    """

    period_s = PERIOD_S

    def __init__(self, what: str, read_w: Callable[[], float], clock: Callable[[], float]) -> None:
        self._what = what
        self._read_w = read_w
        self._clock = clock
        self._power_w = read_w()
        self._at_s = clock()
        self._joules = 0.0
        self.problem = ""

    def joules(self) -> float | None:
        """Joules so far; `None` if time has not passed, or a part of it was not sampled."""
        if not self.problem:
            try:
                self._advance()
            except DeviceError as error:
                self.problem = str(error)
        return self._joules if self._joules and not self.problem else None

    def _advance(self) -> None:
        power_w, now_s = self._read_w(), self._clock()
        elapsed_s = now_s - self._at_s
        if elapsed_s > GAP_S:
            self.problem = f"the power of {self._what} was not read for {elapsed_s:.0f} s"
        self._joules += (power_w + self._power_w) / 2 * elapsed_s
        self._power_w, self._at_s = power_w, now_s


class NvmlMeter:
    """One GPU.

    Parameters
    ----------
    device : str
        The name of the device.
    address : str
        Its PCI address.
    clocks : Clocks

    Raises
    ------
    DeviceError
        If it tells neither its energy nor its power, or cannot be reached.
    """

    def __init__(self, device: str, address: str, clocks: Clocks = CLOCKS) -> None:
        self.name = f"nvml:{device}"
        self.devices: tuple[str, ...] = (device,)
        with translated(device) as nvml:
            nvml.nvmlInit()
        try:
            with translated(device) as nvml:
                self._handle = nvml.nvmlDeviceGetHandleByPciBusId(address)
            self._count = self._counting(clocks)
        except BaseException:
            self.close()
            raise

    @property
    def period_s(self) -> float | None:
        """None for a GPU that counts by itself."""
        return self._count.period_s

    @property
    def problem(self) -> str:
        """What befell its counter."""
        return self._count.problem

    def read(self) -> Reading | None:
        """Joules of the whole board; `None` if they were not counted to the end."""
        joules = self._count.joules()
        return None if joules is None else Reading(joules, "measured")

    def close(self) -> None:
        """Release the library; others in this process may go on using it."""
        with translated(self.devices[0]) as nvml:
            nvml.nvmlShutdown()

    def _counting(self, clocks: Clocks) -> Counter | PowerIntegral:
        device = self.devices[0]
        with translated(device) as nvml:
            try:
                nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)
            except nvml.NVMLError as error:
                if error.value != nvml.NVML_ERROR_NOT_SUPPORTED:
                    raise
                return PowerIntegral(device, self._power_w, clocks.awake)
        what = f"the counter of {device}"
        return Counter(what, self._millijoules, MILLI, limit_w=LIMIT_W, clocks=clocks)

    def _millijoules(self) -> int:
        with translated(self.devices[0]) as nvml:
            return int(nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle))

    def _power_w(self) -> float:
        with translated(self.devices[0]) as nvml:
            return float(nvml.nvmlDeviceGetPowerUsage(self._handle)) * MILLI


class NvmlDriver:
    """Finds the GPUs that can be measured.

    Parameters
    ----------
    addresses : callable
        Returns the PCI addresses of the GPUs, by their number in CUDA.
    clocks : Clocks
    """

    name = "nvml"

    def __init__(
        self, addresses: Callable[[], Sequence[str]] = bus_ids, clocks: Clocks = CLOCKS
    ) -> None:
        self._addresses = addresses
        self._clocks = clocks

    def open(self, devices: Sequence[Device]) -> Sequence[EnergyMeter]:
        """One meter for each GPU that tells its energy or its power."""
        names = {d.name for d in devices if d.kind == "cuda" and not d.simulated}
        return [*self._meters(names)[0]] if names else []

    def problems(self) -> Sequence[str]:
        """What keeps GPUs from being measured, and what to do."""
        try:
            with translated("no NVML") as nvml:
                nvml.nvmlInit()
                nvml.nvmlShutdown()
        except DeviceError as error:
            return [str(error)]
        meters, problems = self._meters({f"cuda:{i}" for i in range(len(self._addresses()))})
        for meter in meters:
            meter.close()
        return problems

    def _meters(self, names: set[str]) -> tuple[list[NvmlMeter], list[str]]:
        meters, problems = [], []
        for ordinal, address in enumerate(self._addresses()):
            if f"cuda:{ordinal}" not in names:
                continue
            try:
                meters.append(NvmlMeter(f"cuda:{ordinal}", address, self._clocks))
            except DeviceError as error:
                problems.append(str(error))
        return meters, problems


driver = NvmlDriver()
