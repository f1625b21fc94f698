"""Where learned costs are kept between runs: one file a machine, plain data, many processes.

Writers take a lock beside the file, merge what is there with what they learned, and replace the
file whole.  A file that cannot be used is set aside, with a warning, and learning starts anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import os
import platform
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import platformdirs

from legato_rt.errors import FormatError
from legato_rt.files import decode_json, read_bytes
from legato_rt.history import WINDOW, Cell, History, Key

logger = logging.getLogger(__name__)

FORMAT = "legato_rt.costs"
VERSION = 1
MAX_BYTES = 64 * 2**20


class _Cell(msgspec.Struct, forbid_unknown_fields=True):
    task: str
    variant: str
    device: str
    point: str
    width: int
    shape: str
    size: float
    count: int
    runs: list[float]
    joules_per_s: float | None = None


class _File(msgspec.Struct, forbid_unknown_fields=True):
    format: str
    version: int
    cells: list[_Cell]


def default_path() -> Path:
    """The file of this machine, in the user's cache directory."""
    told = f"{platform.node()} {platform.machine()} {platform.processor()} {os.cpu_count()}"
    name = hashlib.sha256(told.encode()).hexdigest()[:12]
    return Path(platformdirs.user_cache_dir("legato_rt")) / f"costs-{name}.json"


def load(path: Path) -> History:
    """Read learned costs; an unusable file is set aside as ``….broken``."""
    history = History()
    if not path.exists():
        return history
    try:
        for key, cell in _read(path):
            history.put(key, cell)
    except FormatError as error:
        aside = path.with_suffix(path.suffix + ".broken")
        logger.warning("%s; it is kept as %s, and costs are learned anew", error, aside)
        with contextlib.suppress(OSError):
            os.replace(path, aside)
        return History()
    return history


def save(history: History, path: Path) -> None:
    """Merge what was learned into the file; of two cells the one with more runs stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(path):
        merged = load(path)
        for key, cell in history.cells.items():
            known = merged.cells.get(key)
            if known is None:
                merged.put(key, cell)
            elif cell.count >= known.count:
                merged.cells[key] = cell
        _write(merged, path)


def replace(history: History, path: Path) -> None:
    """Write learned costs as they are, without merging."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(path):
        _write(history, path)


def _read(path: Path) -> list[tuple[Key, Cell]]:
    content = decode_json(path, read_bytes(path, MAX_BYTES), _File)
    if (content.format, content.version) != (FORMAT, VERSION):
        raise FormatError(path, "format", f"is not {FORMAT} version {VERSION}")
    found = []
    for number, stored in enumerate(content.cells):
        good = [run for run in stored.runs if 0 <= run < float("inf")]
        if not good or len(good) != len(stored.runs) or len(good) > WINDOW or stored.count < 1:
            raise FormatError(path, f"cells[{number}]", "has runs that cannot be")
        cell = Cell(stored.size)
        cell.runs, cell.count, cell.joules_per_s = good, stored.count, stored.joules_per_s
        key = Key(
            stored.task, stored.variant, stored.device, stored.point, stored.width, stored.shape
        )
        found.append((key, cell))
    return found


def _write(history: History, path: Path) -> None:
    cells = [
        _Cell(*key, cell.size, cell.count, cell.runs, cell.joules_per_s)
        for key, cell in history.cells.items()
    ]
    content = msgspec.json.encode(_File(FORMAT, VERSION, cells))
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name, delete=False) as file:
        file.write(content)
    os.replace(file.name, path)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with open(path.with_suffix(path.suffix + ".lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)
