"""Asks the NVIDIA driver what GPUs there are, without any package that uses them."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

LIBRARY = "libcuda.so.1"
CAPABILITY_MAJOR, CAPABILITY_MINOR = 75, 76  # CUdevice_attribute

# CUresult of cuInit and cuDeviceGetCount, and what to do about it.
REASONS = {
    35: "the driver is too old: install a newer one",
    100: "the driver shows no GPU: `nvidia-smi` must list one, and CUDA_VISIBLE_DEVICES must not "
    "hide it",
    101: "CUDA_VISIBLE_DEVICES names a GPU that is not there",
    802: "the driver is not ready: systemctl start nvidia-fabricmanager",
    803: "the driver's library does not fit its kernel module: restart the machine after an update",
    804: "the driver is too old for the CUDA libraries installed beside it: update the driver, or "
    "remove the compatibility libraries (cuda-compat)",
    999: "the driver does not start: run nvidia-modprobe as root, or restart the container or the "
    "machine",
}


class Gpu(NamedTuple):
    """A GPU, in the order of the CUDA runtime."""

    name: str
    memory_bytes: int
    capability: str


def gpus(library: str = LIBRARY) -> tuple[list[Gpu], str]:
    """The GPUs that the driver shows to this process; if none, the reason and what to do."""
    try:
        driver = ctypes.CDLL(library)
    except OSError:
        return [], (
            f"no NVIDIA driver ({library} is not found): install the vendor's driver; a container "
            "must be started with the GPU passed on, for instance docker run --gpus all"
        )
    count = ctypes.c_int()
    code = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    if code or not count.value:
        return [], reason(code or 100)
    return [_gpu(driver, ordinal) for ordinal in range(count.value)], ""


def _gpu(driver: ctypes.CDLL, ordinal: int) -> Gpu:
    device, size, number = ctypes.c_int(), ctypes.c_size_t(), ctypes.c_int()
    name = ctypes.create_string_buffer(200)
    driver.cuDeviceGet(ctypes.byref(device), ordinal)
    driver.cuDeviceGetName(name, len(name), device)
    driver.cuDeviceTotalMem_v2(ctypes.byref(size), device)
    parts = []
    for attribute in (CAPABILITY_MAJOR, CAPABILITY_MINOR):
        driver.cuDeviceGetAttribute(ctypes.byref(number), attribute, device)
        parts.append(str(number.value))
    return Gpu(name.value.decode(errors="replace"), size.value, ".".join(parts))


def reason(
    code: int, dev: Path = Path("/dev"), may_use: Callable[[Path, int], bool] = os.access
) -> str:
    """Why the driver shows no GPU, and what to do.

    Parameters
    ----------
    code : int
        What the driver answered.
    dev : Path
        Where device files are.
    may_use : callable
        Takes a file and a mode, as `os.access` does.
    """
    nodes = sorted(dev.glob("nvidia*"))
    locked = [str(node) for node in nodes if not may_use(node, os.R_OK | os.W_OK)]
    if locked:
        return (
            f"no permission for {', '.join(locked)}: have an administrator allow it, for instance "
            "by the group that owns the files (ls -l /dev/nvidia*)"
        )
    return REASONS.get(code, f"the NVIDIA driver answers with error {code}: see `nvidia-smi`")
