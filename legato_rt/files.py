"""Reading files that others wrote: bounded in size, checked, with errors that name the place."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, TypeVar

from legato_rt.errors import FormatError

T = TypeVar("T")

MAX_BYTES = 256 * 2**20


def read_bytes(path: str | Path, max_bytes: int = MAX_BYTES) -> bytes:
    """Read a whole file.

    Raises
    ------
    FormatError
        If it is not there, cannot be read, or is larger than ``max_bytes``.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(max_bytes + 1)
    except OSError as error:
        raise FormatError(path, "", f"cannot be read: {error.strerror or error}") from error
    if len(content) > max_bytes:
        raise FormatError(path, "", f"is larger than {max_bytes:,} bytes")
    return content


def as_text(path: str | Path, content: bytes) -> str:
    """A file's content as text.

    Raises
    ------
    FormatError
        If it is not in UTF-8.
    """
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(path, line_at(content, error.start), "is not text in UTF-8") from error


def line_at(content: bytes, offset: int) -> str:
    """``line N`` for a byte's position in a file."""
    line = content.count(b"\n", 0, offset) + 1
    return f"line {line}"


def decode_json(path: str | Path, content: bytes, kind: type[T]) -> T:
    """Read JSON as a structure.

    Raises
    ------
    FormatError
        Naming the line of what is no JSON, or the field that does not fit the structure.
    """
    import msgspec

    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.ValidationError as error:
        raise _misfit(path, error) from None
    except msgspec.DecodeError as error:
        byte = re.search(r"\(byte (\d+)\)", str(error))
        place = line_at(content, int(byte[1])) if byte else ""
        raise FormatError(path, place, str(error)) from None


def convert(path: str | Path, content: Any, kind: type[T]) -> T:
    """Read plain lists and dicts as a structure; raises as `decode_json` does."""
    import msgspec

    try:
        return msgspec.convert(content, type=kind)
    except msgspec.ValidationError as error:
        raise _misfit(path, error) from None


def _misfit(path: str | Path, error: Exception) -> FormatError:
    problem, _, place = str(error).partition(" - at ")
    return FormatError(path, place.strip("`").removeprefix("$").removeprefix("."), problem)
