"""OpenCL programs for variants: compiled from source, or loaded from prebuilt binaries.

The compiler of an FPGA takes hours, so its programs are files that were built before; an emulator's
or a GPU's can be compiled when they are first used, and kept as files for the next time.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

from legato_rt.devices.opencl_errors import translated
from legato_rt.errors import BuildError

_programs: dict[Hashable, Any] = {}
_locks: dict[Hashable, threading.Lock] = {}
_kernels = threading.local()


def program(
    queue: Any,
    source: str | Path | None = None,
    binary: str | Path | None = None,
    options: Sequence[str] = (),
) -> Any:
    """A program for the device of a queue, built once for each device of the process.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        For instance that of an argument: ``c.queue``.
    source : str or Path, optional
        OpenCL C, or the file that holds it.
    binary : str or Path, optional
        A file for this device, for instance ``"gemm.aocx"``; ``{device}`` in it stands for the
        device's name.  If it is missing, it is made from the source by the device's compiler.
    options : sequence of str, optional
        For the compiler.

    Raises
    ------
    BuildError
        If the source does not compile, or there is neither source nor a file for this device.
    """
    device = queue.device
    path = None if binary is None else Path(str(binary).format(device=slug(device.name)))
    key = queue.context, device, source, path, tuple(options)
    lock = _locks.setdefault(key, threading.Lock())
    with lock:
        found = _programs.get(key)
        if found is None:
            found = _programs[key] = _built(queue.context, device, source, path, options)
    return found


def kernel(queue: Any, name: str, **built: Any) -> Any:
    """A kernel of a `program`, for this thread alone: setting arguments is no single step.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    name : str
    **built
        What `program` takes.

    Returns
    -------
    pyopencl.Kernel
    """
    import pyopencl

    made = program(queue, **built)
    kept: dict[Any, Any] = _kernels.__dict__.setdefault("kept", {})
    found = kept.get((made, name))
    if found is None:
        with translated(queue.device):
            found = kept[made, name] = pyopencl.Kernel(made, name)
    return found


def slug(name: str) -> str:
    """A device's name as a part of a file's: ``intel-r-fpga-emulation-device``."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _built(
    context: Any, device: Any, source: str | Path | None, binary: Path | None, options: Any
) -> Any:
    if binary is not None and binary.exists():
        return _loaded(context, device, binary)
    if source is None or not device.compiler_available:
        where = f"{binary} is not there, and " if binary is not None else ""
        why = "there is no source" if source is None else f"{device.name} has no compiler"
        raise BuildError(f"{where}{why}: give a binary that was built for {device.name} beforehand")
    made = _compiled(context, device, source, options)
    if binary is not None:
        _save(made, device, binary)
    return made


def _compiled(context: Any, device: Any, source: str | Path, options: Any) -> Any:
    import pyopencl

    text = source.read_text(encoding="utf-8") if isinstance(source, Path) else source
    with translated(device):
        return pyopencl.Program(context, text).build(list(options), devices=[device])


def _loaded(context: Any, device: Any, binary: Path) -> Any:
    import pyopencl

    try:
        return pyopencl.Program(context, [device], [binary.read_bytes()]).build()
    except pyopencl.Error as error:
        raise BuildError(
            f"{binary} cannot be used on {device.name.strip()}, for which it may not have been "
            f"built: {error}"
        ) from error


def _save(made: Any, device: Any, binary: Path) -> None:
    """Write the device's binary, at once or not at all."""
    import pyopencl

    devices = made.get_info(pyopencl.program_info.DEVICES)
    content = made.get_info(pyopencl.program_info.BINARIES)[devices.index(device)]
    binary.parent.mkdir(parents=True, exist_ok=True)
    part = binary.with_name(f"{binary.name}.{threading.get_ident()}")
    part.write_bytes(content)
    part.replace(binary)
