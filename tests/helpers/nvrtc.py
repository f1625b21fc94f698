"""NVIDIA's run-time compiler as a library, which needs neither a GPU nor a driver."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any


@functools.cache
def library() -> Any:
    """Return the library of the package nvidia-cuda-nvrtc-cu12, or None where it is not there."""
    try:
        spec = importlib.util.find_spec("nvidia.cuda_nvrtc")
    except ModuleNotFoundError:
        return None
    folders = spec.submodule_search_locations if spec else None
    found = [path for folder in folders or () for path in Path(folder).glob("lib/libnvrtc.so.*")]
    return ctypes.CDLL(str(found[0])) if found else None


def compile_cuda(text: str, architecture: str, options: Sequence[str] = ()) -> tuple[bytes, str]:
    """Compile CUDA C++ for an architecture such as ``sm_90``.

    Returns
    -------
    tuple of (bytes, str)
        The machine code, and what the compiler said.

    Raises
    ------
    ValueError
        If it cannot be compiled; with what the compiler said.
    """
    nvrtc = library()
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
    try:
        words = [option.encode() for option in (f"--gpu-architecture={architecture}", *options)]
        failed = nvrtc.nvrtcCompileProgram(
            program, len(words), (ctypes.c_char_p * len(words))(*words)
        )
        log = _read(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
        said = log.rstrip(b"\0").decode().strip()
        if failed:
            raise ValueError(said)
        return _read(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program), said
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _read(size_of: Any, read: Any, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    size_of(program, ctypes.byref(size))
    memory = ctypes.create_string_buffer(size.value)
    read(program, memory)
    return memory.raw
