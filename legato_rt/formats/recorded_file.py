"""The structure of recorded graphs as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

Amount = Annotated[float, Meta(ge=0)]
Index = Annotated[int, Meta(ge=0)]
Datum = tuple[str, Amount]


class TaskEntry(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One task; the fields of `TaskRecord`, in their order."""

    name: str
    kind: str
    predecessors: tuple[Index, ...] = ()
    reads: tuple[Datum, ...] = ()
    writes: tuple[Datum, ...] = ()
    seconds: dict[str, Amount] = {}
    cores: Annotated[int, Meta(ge=1)] = 1
    resources: tuple[Index, ...] = ()
    flops: Amount | None = None
    priority: int = 0


FIELDS = TaskEntry.__struct_fields__


class GraphFile(Struct, forbid_unknown_fields=True):
    """A whole file."""

    format: str
    version: int
    tasks: list[TaskEntry]
    name: str = ""
    capacities: tuple[Index, ...] = ()


def encode(head: Mapping[str, Any], tasks: Iterable[TaskEntry]) -> bytes:
    """A whole file, one task a line."""
    start = msgspec.json.encode(head)[:-1] + b',\n"tasks": [\n'
    return start + b",\n".join(msgspec.json.encode(task) for task in tasks) + b"\n]}\n"
