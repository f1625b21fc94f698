"""Graph files, and the form that all of them are read into."""

from __future__ import annotations

from pathlib import Path

from legato_rt.errors import FormatError
from legato_rt.files import MAX_BYTES, read_bytes
from legato_rt.formats.recorded import FORMAT, GraphRecord, TaskRecord

__all__ = ["GraphRecord", "TaskRecord", "load", "parse"]


def load(path: str | Path, max_bytes: int = MAX_BYTES) -> GraphRecord:
    """Read a graph file of any known format, told by its suffix.

    ``.stg`` is a Standard Task Graph, ``.rcp`` a project in Patterson's format, ``.json`` a
    recorded graph or a WfFormat 1.5 trace.

    Raises
    ------
    FormatError
        Naming the file, and the line or field that cannot be used; also for a file of more than
        ``max_bytes``.
    """
    return parse(path, read_bytes(path, max_bytes))


def parse(path: str | Path, content: bytes) -> GraphRecord:
    """Read the content of a graph file; its path tells the format, as for `load`."""
    suffix = Path(path).suffix.lower()
    if suffix == ".stg":
        from legato_rt.formats.stg import parse_stg

        return parse_stg(path, content)
    if suffix == ".rcp":
        from legato_rt.formats.rcp import parse_rcp

        return parse_rcp(path, content)
    if suffix != ".json":
        raise FormatError(path, "", "is none of .json, .stg and .rcp")
    if f'"{FORMAT}"'.encode() in content[:4096]:
        return GraphRecord.parse(path, content)
    from legato_rt.formats.wfformat import parse_wfformat

    return parse_wfformat(path, content)
