"""Stands for ``pynvml`` where there is no GPU: the calls of the vendor's module, over set numbers.

Names, units and error codes are those of nvidia-ml-py; a test holds them against the real module.
"""

from __future__ import annotations

import types
from dataclasses import dataclass, field
from typing import Any

SUCCESS, NOT_SUPPORTED, NO_PERMISSION, LIBRARY_NOT_FOUND, GPU_IS_LOST = 0, 3, 4, 12, 15
UNINITIALIZED, NOT_FOUND = 1, 6
TEXTS = {
    UNINITIALIZED: "Uninitialized",
    NOT_SUPPORTED: "Not Supported",
    NO_PERMISSION: "Insufficient Permissions",
    NOT_FOUND: "Not Found",
    LIBRARY_NOT_FOUND: "NVML Shared Library Not Found",
    GPU_IS_LOST: "GPU is lost",
}


class NVMLError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value

    def __str__(self) -> str:
        return TEXTS[self.value]


@dataclass
class Gpu:
    """What one GPU shows: a count and watts, or the codes with which it refuses."""

    energy_mj: int = 5_000_000
    power_mw: int = 100_000
    energy_code: int = SUCCESS
    power_code: int = SUCCESS


@dataclass
class Library:
    """The library: its GPUs by PCI address, and how often it was initialised."""

    gpus: dict[str, Gpu] = field(default_factory=dict)
    init_code: int = SUCCESS
    users: int = 0

    def module(self) -> Any:
        """What ``import pynvml`` gives."""
        made: Any = types.ModuleType("pynvml")
        made.NVMLError = NVMLError
        made.NVML_ERROR_NOT_SUPPORTED = NOT_SUPPORTED
        made.nvmlInit = self._init
        made.nvmlShutdown = self._shutdown
        made.nvmlDeviceGetHandleByPciBusId = self._handle
        made.nvmlDeviceGetTotalEnergyConsumption = self._energy
        made.nvmlDeviceGetPowerUsage = self._power
        return made

    def _init(self) -> None:
        _check(self.init_code)
        self.users += 1

    def _shutdown(self) -> None:
        _check(SUCCESS if self.users else UNINITIALIZED)
        self.users -= 1

    def _handle(self, address: str) -> Gpu:
        _check(SUCCESS if self.users else UNINITIALIZED)
        _check(SUCCESS if address in self.gpus else NOT_FOUND)
        return self.gpus[address]

    def _energy(self, gpu: Gpu) -> int:
        _check(SUCCESS if self.users else UNINITIALIZED)
        _check(gpu.energy_code)
        return gpu.energy_mj

    def _power(self, gpu: Gpu) -> int:
        _check(SUCCESS if self.users else UNINITIALIZED)
        _check(gpu.power_code)
        return gpu.power_mw


def _check(code: int) -> None:
    if code != SUCCESS:
        raise NVMLError(code)
