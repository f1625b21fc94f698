"""WfFormat 1.5: traces of workflows, as WfCommons publishes them.

https://github.com/wfcommons/WfFormat describes the format, https://github.com/wfcommons/WfInstances
holds instances.  Tasks get their recorded run time on a CPU, the files that they read and write
with their sizes, and their number of cores.  The recorded time is that on the cores it had then.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct, field

from legato_rt.errors import FormatError
from legato_rt.files import decode_json
from legato_rt.formats.recorded import Datum, GraphRecord, TaskRecord, checked
from legato_rt.formats.sorting import in_order

VERSION = "1.5"

Amount = Annotated[float, Meta(ge=0)]


class File(Struct):
    """A file that tasks hand over."""

    id: str
    size: Amount = field(name="sizeInBytes")


class Planned(Struct):
    """A task as it was specified."""

    name: str
    id: str
    parents: list[str]
    children: list[str] = []
    reads: list[str] = field(name="inputFiles", default_factory=list)
    writes: list[str] = field(name="outputFiles", default_factory=list)


class Command(Struct):
    """What a task ran."""

    program: str = ""


class Executed(Struct):
    """A task as it ran."""

    id: str
    seconds: Amount = field(name="runtimeInSeconds")
    command: Command = field(default_factory=Command)
    cores: Annotated[float, Meta(ge=0)] | None = field(name="coreCount", default=None)


class Specification(Struct):
    """What was to be done."""

    tasks: list[Planned]
    files: list[File] = []


class Execution(Struct):
    """What was done."""

    tasks: list[Executed]


class Workflow(Struct):
    """Both."""

    specification: Specification
    execution: Execution


class WorkflowFile(Struct):
    """The parts of a whole file that are read; others are left alone."""

    name: str
    version: str = field(name="schemaVersion")
    workflow: Workflow


def parse_wfformat(path: str | Path, content: bytes) -> GraphRecord:
    """Read a workflow trace.

    The path is for messages.

    The kind of a task is the program that it ran or, where that is a script, its own name without
    the number at the end.

    Raises
    ------
    FormatError
        Naming the file, and the line or field that cannot be used.
    """
    read = decode_json(path, content, WorkflowFile)
    if read.version != VERSION:
        raise FormatError(path, "schemaVersion", f"is {read.version!r}; {VERSION!r} is known")
    planned = read.workflow.specification.tasks
    index = _index(path, planned)
    ran = {task.id: task for task in read.workflow.execution.tasks}
    sizes = {file.id: float(file.size) for file in read.workflow.specification.files}
    order, predecessors = in_order(path, [t.id for t in planned], _parents(path, planned, index))
    tasks = []
    for at, before in zip(order, predecessors, strict=True):
        task = planned[at]
        if task.id not in ran:
            raise FormatError(path, "workflow.execution.tasks", f"{task.id!r} is not among them")
        place = f"workflow.specification.tasks[{at}]"
        reads = _data(path, f"{place}.inputFiles", task.reads, sizes)
        writes = _data(path, f"{place}.outputFiles", task.writes, sizes)
        tasks.append(_record(task, ran[task.id], before, reads, writes))
    return checked(path, tasks, read.name)


def _record(
    task: Planned,
    run: Executed,
    before: tuple[int, ...],
    reads: tuple[Datum, ...],
    writes: tuple[Datum, ...],
) -> TaskRecord:
    seconds = {"cpu": float(run.seconds)}
    cores = max(1, round(run.cores or 1))
    return TaskRecord(task.id, _kind(task, run), before, reads, writes, seconds, cores)


def _kind(task: Planned, run: Executed) -> str:
    words = run.command.program.split()
    if len(words) == 1:
        return words[0].rpartition("/")[2]
    return re.sub(r"[_-]?(ID)?\d+$", "", task.name) or task.name


def _index(path: str | Path, planned: list[Planned]) -> dict[str, int]:
    index: dict[str, int] = {}
    for at, task in enumerate(planned):
        if task.id in index:
            place = f"workflow.specification.tasks[{at}].id"
            raise FormatError(path, place, f"{task.id!r} is there twice")
        index[task.id] = at
    return index


def _parents(path: str | Path, planned: list[Planned], index: Mapping[str, int]) -> list[list[int]]:
    """Each task's predecessors: those that it names, and those that name it as a child."""
    parents: list[list[int]] = [[] for _ in planned]
    for at, task in enumerate(planned):
        for name, others in (("parents", task.parents), ("children", task.children)):
            for other in others:
                if other not in index:
                    place = f"workflow.specification.tasks[{at}].{name}"
                    raise FormatError(path, place, f"there is no task {other!r}")
                if name == "parents":
                    parents[at].append(index[other])
                else:
                    parents[index[other]].append(at)
    return [sorted(set(before)) for before in parents]


def _data(
    path: str | Path, place: str, names: list[str], sizes: Mapping[str, float]
) -> tuple[Datum, ...]:
    for name in names:
        if name not in sizes:
            raise FormatError(path, place, f"there is no file {name!r}")
    return tuple((name, sizes[name]) for name in dict.fromkeys(names))
