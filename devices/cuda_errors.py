"""The errors of CuPy, Numba and the CUDA libraries as errors of legato_rt.

They are told apart by name, so that none of these packages has to be loaded for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from legato_rt.devices.compiler_log import quoted
from legato_rt.errors import BuildError, DeviceError, DeviceLost, DeviceOutOfMemory

API = ("CUDARuntimeError", "CUDADriverError", "CudaAPIError")
COMPILERS = (
    *("CompileException", "NVRTCError"),
    *("NvvmError", "LinkerError", "TypingError", "LoweringError"),  # Numba's
)

OUT_OF_MEMORY = (2,)
# invalid PTX, no kernel image for the device, unsupported PTX version, JIT compiler not found
BUILD = (200, 209, 218, 221, 222)
# deinitialized, devices unavailable, ECC error, illegal address, timeout, context destroyed,
# assert, hardware stack error to launch failure: no call of the process works after these
LOST = (4, 46, 214, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719)
# invalid value (of a launch), invalid configuration, too many resources requested
WORK_SIZE = (1, 9, 701)
# Statuses of the vendor's libraries that mean a failed allocation.
LIBRARIES = {"CUBLASError": 3, "CuFFTError": 2, "CUSOLVERError": 2, "CuSparseError": 2}


@contextmanager
def translated(device: str) -> Iterator[None]:
    """Raise our errors for CUDA's; others pass.

    Parameters
    ----------
    device : str
        Named in the messages.

    Raises
    ------
    DeviceOutOfMemory, BuildError, DeviceLost, DeviceError
    """
    try:
        yield
    except Exception as error:
        found = translate(error, device)
        if found is None:
            raise
        raise found from error


def translate(error: Exception, device: str) -> DeviceError | None:
    """The error of legato_rt for one of CUDA's; `None` for all others."""
    if type(error).__module__.split(".")[0] not in ("cupy", "cupy_backends", "numba"):
        missing = isinstance(error, RuntimeError) and "failed to load libnvrtc" in str(error)
        return BuildError(f"{device}: {error}\n{_NVRTC}") if missing else None
    kind, message = type(error).__name__, f"{device}: {error}"
    if kind == "OutOfMemoryError":
        return DeviceOutOfMemory(message)
    if kind in COMPILERS:
        return BuildError(message + quoted(str(error), getattr(error, "source", None)))
    if kind in API:
        code = getattr(error, "status", getattr(error, "code", None))
        return _by_code(code, kind, message, error)
    if kind in LIBRARIES:
        full = getattr(error, "status", None) == LIBRARIES[kind]
        return DeviceOutOfMemory(message) if full else DeviceError(message)
    return None


_NVRTC = (
    "pip install 'legato_rt[cuda]' (CUDA 12) or 'legato_rt[cuda13]' brings the compiler that "
    "CuPy needs"
)


def _by_code(code: int | None, kind: str, message: str, error: Exception) -> DeviceError:
    if code in OUT_OF_MEMORY:
        return DeviceOutOfMemory(message)
    if code in BUILD:
        return BuildError(message)
    if code in LOST:
        return DeviceLost(f"{message}; CUDA works again when the program is started anew")
    if code in WORK_SIZE and not (code == 1 and kind == "CUDARuntimeError"):
        return DeviceError(message + _sizes(error.__traceback__))
    return DeviceError(message)


def _sizes(trace: TracebackType | None) -> str:
    """What sizes of work were asked for, as far as frames tell, and what is allowed."""
    asked = ""
    while trace is not None:
        asked = _grid(trace.tb_frame.f_locals) or asked
        trace = trace.tb_next
    return f" ({asked}{_allowed()})"


def _grid(variables: Mapping[str, Any]) -> str:
    names = [n for n in ("grid", "groups", "block", "group") if isinstance(variables.get(n), tuple)]
    parts = (f"{name} {variables[name]}" for name in names)
    return f"asked: {', '.join(parts)}; " if names else ""


def _allowed() -> str:
    try:
        import cupy

        limits = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.runtime.getDevice())
    except Exception:  # no package, no driver, or one that is past answering
        return "allowed: see the device's properties"
    return (
        f"allowed: {limits['maxThreadsPerBlock']} threads a block, at most "
        f"{tuple(limits['maxThreadsDim'])}; grids of at most {tuple(limits['maxGridSize'])}; "
        f"{limits['sharedMemPerBlock']} bytes of shared memory and {limits['regsPerBlock']} "
        "registers a block"
    )
