"""Which OpenCL devices there are, and what keeps others from being there.

PyOpenCL is loaded when devices are first looked for, and they are looked for once.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from legato_rt.devices import icd
from legato_rt.errors import SettingError


@functools.cache
def _platforms() -> tuple[list[tuple[Any, list[Any]]], list[str]]:
    """Platforms with their devices, and what went wrong."""
    try:
        import pyopencl
    except ImportError as error:
        return [], [
            f"PyOpenCL cannot be imported ({error}): pip install 'legato_rt[opencl]' brings it, "
            "and with it PoCL for the CPU"
        ]
    wrong: list[str] = []
    try:
        icd.prepare()
    except OSError as error:
        wrong.append(f"Intel's FPGA emulator cannot be made known: {error}; set TMPDIR")
    try:
        platforms = pyopencl.get_platforms()
    except pyopencl.Error as error:
        return [], [
            *wrong,
            f"no OpenCL platform ({error}): pip install 'legato_rt[opencl]' brings PoCL for the "
            "CPU; for other devices install the vendor's driver, whose .icd file must lie in "
            "/etc/OpenCL/vendors or in the folder that OCL_ICD_VENDORS names",
        ]
    found = []
    for platform in platforms:
        try:
            found.append((platform, platform.get_devices()))
        except pyopencl.Error as error:
            wrong.append(f"{platform.name.strip()} cannot list its devices: {error}")
    return found, wrong


@functools.cache
def devices(kind: str) -> dict[str, Any]:
    """PyOpenCL devices by name."""
    found = [
        part
        for _, all_kinds in _platforms()[0]
        for device in all_kinds
        if (kind == "fpga") == (_is_accelerator(device) or _is_declared(device))
        for part in _parts(device)
    ]
    return {f"{kind}:{i}": device for i, device in enumerate(sorted(found, key=is_checker))}


def _is_accelerator(device: Any) -> bool:
    import pyopencl

    return bool(device.type == pyopencl.device_type.ACCELERATOR)


def _is_declared(device: Any) -> bool:
    """Whether the user said that this device is, or stands for, an FPGA."""
    text = os.environ.get("LEGATO_RT_FPGA", "").lower()
    platform = device.platform
    names = f"{device.name}\n{platform.name}\n{platform.version}"  # PoCL's name is in its version
    return bool(text) and text in names.lower()


def is_checker(device: Any) -> bool:
    """Whether a device is oclgrind, which runs kernels to find what is wrong with them."""
    return "oclgrind" in device.platform.name.lower()


def _parts(device: Any) -> list[Any]:
    """The device, or as many equal parts of it as ``LEGATO_RT_OPENCL_PARTS`` says."""
    import pyopencl

    text = os.environ.get("LEGATO_RT_OPENCL_PARTS", "1")
    if not text.isdigit() or not int(text):
        raise SettingError(f"LEGATO_RT_OPENCL_PARTS={text!r}: a whole number from 1 is needed")
    units = device.max_compute_units // int(text)
    if int(text) == 1 or not units:
        return [device]
    equally = pyopencl.device_partition_property.EQUALLY
    try:
        return list(device.create_sub_devices([equally, units]))
    except pyopencl.Error:  # most devices cannot be parted
        return [device]


def is_emulated(device: Any) -> bool:
    """Whether a device of kind ``fpga`` only stands for one."""
    return not _is_accelerator(device) or "emulation" in device.name.lower()


def parent(device: Any) -> Any:
    """The device that a device is a part of, or `None`."""
    import pyopencl

    try:
        return device.parent_device
    except pyopencl.Error:  # OpenCL 1.1 has no parts
        return None


# -- what is missing ----------------------------------------------------------------------------


def problems(kind: str) -> list[str]:
    """What keeps devices of this kind from being used, and what to do about each."""
    platforms, wrong = _platforms()
    if importlib.util.find_spec("pyopencl") is None:
        return wrong
    if kind == "fpga":
        return wrong if devices(kind) else [*wrong, _why_no_fpga()]
    if not platforms:
        return wrong
    if not devices(kind):
        names = ", ".join(platform.name.strip() for platform, _ in platforms)
        wrong = [*wrong, f"no device of kind opencl on the platforms that there are: {names}"]
    return wrong + idle_hardware(Path("/dev"), _has_gpu())


def _has_gpu() -> bool:
    import pyopencl

    gpu, cpu = pyopencl.device_type.GPU, pyopencl.device_type.CPU
    return any(d.type & gpu and not d.type & cpu for _, found in _platforms()[0] for d in found)


def idle_hardware(
    dev: Path, has_gpu: bool, may_use: Callable[[Path, int], bool] = os.access
) -> list[str]:
    """Graphics hardware that this process may not use, or that lacks a driver.

    Parameters
    ----------
    dev : Path
        Where device files are: ``/dev``.
    has_gpu : bool
        Whether OpenCL shows a GPU.
    may_use : callable
        Takes a file and a mode, as `os.access` does.
    """
    nodes = [*sorted(dev.glob("dri/renderD*")), *dev.glob("kfd")]
    locked = [str(node) for node in nodes if not may_use(node, os.R_OK | os.W_OK)]
    if locked:
        return [
            f"no permission for {', '.join(locked)}: sudo usermod -aG render,video $USER, then log "
            "in anew; in a container pass the device on, for instance with --device /dev/dri"
        ]
    if nodes and not has_gpu:
        return [
            f"{nodes[0]} is a graphics device without an OpenCL driver; if it can compute, install "
            "the vendor's: intel-opencl-icd (Intel), rocm-opencl-runtime or mesa-opencl-icd (AMD)"
        ]
    return []


def _why_no_fpga() -> str:
    declared = os.environ.get("LEGATO_RT_FPGA")
    if declared:
        names = [d.name.strip() for _, found in _platforms()[0] for d in found]
        return (
            f"LEGATO_RT_FPGA={declared!r} is in the name of no device and platform; there are "
            f"{', '.join(names) or 'none'}"
        )
    library = icd.emulator()
    if library is None:
        return (
            "no FPGA: a card needs its vendor's runtime and .icd file; for an emulated one, pip "
            "install 'legato_rt[fpga-emu]' brings Intel's (about 1 GB, for Linux on x86-64), and "
            "LEGATO_RT_FPGA=pocl lets the OpenCL device of that name stand for one"
        )
    try:
        ctypes.CDLL(str(library))
    except OSError as error:
        return (
            f"Intel's FPGA emulator cannot be loaded ({error}): pip install --force-reinstall "
            "'legato_rt[fpga-emu]'"
        )
    return (
        f"Intel's FPGA emulator is installed, but the OpenCL loader does not see it: unset "
        f"{icd.VARIABLE}, or put a file emulator.icd with the line {library} into the folder that "
        "it names; and make the Runtime before anything else in the process uses OpenCL"
    )
