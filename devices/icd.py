"""Shows Intel's FPGA emulator to the OpenCL loader.

The packages of the extra ``fpga-emu`` bring the emulator's library, and an ``.icd`` file that
points nowhere.  The loader reads such files in the folder that ``OCL_ICD_VENDORS`` names, or else
in ``/etc/OpenCL/vendors``, once, when a process first asks for platforms.  So before that a folder
with a right file, beside copies of the system's, is made and named; the drivers that PyOpenCL
brings along are found in any case.  Where the variable is set already, whoever set it knows better.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import tempfile
from importlib import metadata
from pathlib import Path

import platformdirs

VARIABLE = "OCL_ICD_VENDORS"
SYSTEM = Path("/etc/OpenCL/vendors")
PACKAGE, LIBRARY = "intel-opencl-fpga-emu-rt", "libintelocl_emu.so"


@functools.cache
def emulator() -> Path | None:
    """The emulator's library, or `None` where its package is not installed."""
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        return None
    found = (Path(str(file.locate())).resolve() for file in files if file.name == LIBRARY)
    return next((path for path in found if path.exists()), None)


@functools.cache
def prepare() -> None:
    """Name a folder with the emulator's ``.icd`` file, if there is one and no other is named.

    Raises
    ------
    OSError
        If the folder can be made neither in the user's cache nor among temporary files.
    """
    library = emulator()
    if library is not None and not os.environ.get(VARIABLE):
        os.environ[VARIABLE] = str(_folder(_texts(library, SYSTEM)))


def _texts(library: Path, system: Path) -> dict[str, str]:
    """Content of the files by name."""
    texts = {path.name: path.read_text() for path in sorted(system.glob("*.icd"))}
    return {**texts, "legato_rt-fpga-emulator.icd": f"{library}\n"}


def _folder(texts: dict[str, str]) -> Path:
    """A folder with these files, named after what is in it, so that it never has to change."""
    digest = hashlib.sha256(repr(sorted(texts.items())).encode()).hexdigest()[:16]
    folder = platformdirs.user_cache_path("legato_rt") / f"icd-{digest}"
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=folder.parent))
    except OSError:  # a home that cannot be written to
        folder = made = Path(tempfile.mkdtemp(prefix="legato_rt-icd-"))
    for name, text in texts.items():
        (made / name).write_text(text)
    if made != folder:
        try:
            made.rename(folder)
        except OSError:  # another process was first
            shutil.rmtree(made)
    return folder
