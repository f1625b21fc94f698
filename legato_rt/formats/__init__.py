"""Graph files, and the form that all of them are read into."""

from __future__ import annotations

from pathlib import Path

from legato_rt.errors import FormatError
from legato_rt.files import MAX_BYTES, read_bytes
from legato_rt.formats.recorded import FORMAT, GraphRecord, TaskRecord

__all__ = ["GraphRecord", "TaskRecord", "load"]


def load(path: str | Path, max_bytes: int = MAX_BYTES) -> GraphRecord:
    """Read a graph file of any known format, told by its suffix.

    ``.stg`` is a Standard Task Graph, ``.rcp`` a project in Patterson's format, ``.json`` a
    recorded graph or a WfFormat 1.5 trace.

    Raises
    ------
    FormatError
        Naming the file, and the line or field that cannot be used.
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".stg":
        from legato_rt.formats.stg import read_stg

        return read_stg(path, max_bytes)
    if suffix == ".rcp":
        from legato_rt.formats.rcp import read_rcp

        return read_rcp(path, max_bytes)
    if suffix != ".json":
        raise FormatError(path, "", "is none of .json, .stg and .rcp")
    if f'"{FORMAT}"'.encode() in read_bytes(path, max_bytes)[:4096]:
        return GraphRecord.load(path, max_bytes)
    from legato_rt.formats.wfformat import read_wfformat

    return read_wfformat(path, max_bytes)
