"""A recorded graph: tasks, what they wait for and what they touch, without any body or array.

It is what `lrt.capture` records, what every graph file is read into, and what the simulator and the
planners take.  Its own file is JSON::

    {"format": "legato_rt.graph", "version": 1, "name": "two tasks", "capacities": [],
     "tasks": [
      {"name": "a", "kind": "load", "writes": [["x", 4096.0]], "seconds": {"cpu": 0.5}},
      {"name": "b", "kind": "work", "predecessors": [0], "reads": [["x", 4096.0]]}]}
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from legato_rt.errors import FormatError, UsageError
from legato_rt.files import MAX_BYTES, decode_json, read_bytes
from legato_rt.order import Dag
from legato_rt.order.arrays import Floats

if TYPE_CHECKING:
    from legato_rt.machine import Device

FORMAT = "legato_rt.graph"
VERSION = 1

Datum = tuple[str, float]
"""A piece of data that tasks share: its name and its bytes."""


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """One task of a recorded graph.

    Attributes
    ----------
    name : str
    kind : str
        What it runs; tasks of one kind cost the same unless ``seconds`` says otherwise.
    predecessors : tuple of int
        Tasks that it waits for, by index; each before it.
    reads, writes : tuple of (str, float)
        Data that it touches: name and bytes.
    seconds : mapping of str to float
        How long it takes, by device name or kind; empty if only its kind's time is known.
    cores : int
        How many workers it takes at once.
    resources : tuple of int
        Its demand of each shared limited resource of the graph.
    flops : float or None
        Floating point operations, where they are known.
    priority : int
        A higher one starts first.
    """

    name: str
    kind: str
    predecessors: tuple[int, ...] = ()
    reads: tuple[Datum, ...] = ()
    writes: tuple[Datum, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    cores: int = 1
    resources: tuple[int, ...] = ()
    flops: float | None = None
    priority: int = 0

    @property
    def cost_name(self) -> str:
        """Under what its costs are given: its own name if it has its own times, else its kind."""
        return self.name if self.seconds else self.kind


@dataclass(frozen=True, slots=True)
class GraphRecord:
    """Tasks in a topological order.

    Attributes
    ----------
    tasks : tuple of TaskRecord
    name : str
    capacities : tuple of int
        How much there is of each shared limited resource.

    Raises
    ------
    UsageError
        If a task waits for one that is not before it, demands more of a resource than there is, or
        has a number that cannot be.
    """

    tasks: tuple[TaskRecord, ...]
    name: str = ""
    capacities: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if any(capacity < 0 for capacity in self.capacities):
            raise Misfit("capacities", "there cannot be less than nothing of a resource")
        for index, task in enumerate(self.tasks):
            _check(index, task, self.capacities)

    @classmethod
    def load(cls, path: str | Path, max_bytes: int = MAX_BYTES) -> GraphRecord:
        """Read a file that `save` wrote.

        Raises
        ------
        FormatError
            Naming the file, and the line or field that cannot be used.
        """
        return cls.parse(path, read_bytes(path, max_bytes))

    @classmethod
    def parse(cls, path: str | Path, content: bytes) -> GraphRecord:
        """Read the content of such a file; raises as `load` does."""
        from legato_rt.formats.recorded_file import FIELDS, GraphFile

        read = decode_json(path, content, GraphFile)
        if read.format != FORMAT:
            raise FormatError(path, "format", f"is {read.format!r}, not {FORMAT!r}")
        if read.version != VERSION:
            raise FormatError(path, "version", f"is {read.version}; {VERSION} is known")
        tasks = [TaskRecord(*(getattr(entry, name) for name in FIELDS)) for entry in read.tasks]
        return checked(path, tasks, read.name, read.capacities)

    def save(self, path: str | Path) -> None:
        """Write the graph as JSON; the file is there whole or not at all."""
        from legato_rt.formats.recorded_file import FIELDS, TaskEntry, encode

        entries = (TaskEntry(*(getattr(task, name) for name in FIELDS)) for task in self.tasks)
        head = {"format": FORMAT, "version": VERSION, "name": self.name}
        target = Path(path)
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".part")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(encode({**head, "capacities": self.capacities}, entries))
            os.replace(name, target)
        except BaseException:
            os.unlink(name)
            raise

    def dag(self) -> Dag:
        """The edges as arrays, each with the bytes that the one task wrote and the other reads."""
        sources: list[int] = []
        targets: list[int] = []
        sizes: list[float] = []
        written = [dict(task.writes) for task in self.tasks]
        for index, task in enumerate(self.tasks):
            for before in task.predecessors:
                sources.append(before)
                targets.append(index)
                sizes.append(sum(written[before].get(name, 0.0) for name, _ in task.reads))
        return Dag.from_edges(len(self.tasks), sources, targets, sizes, self.names)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all tasks."""
        return tuple(task.name for task in self.tasks)

    def seconds(
        self, devices: Sequence[Device], by_kind: Mapping[str, Mapping[str, float]] | None = None
    ) -> Floats:
        """Times of all tasks on some devices, shape (tasks, devices); infinite where none is known.

        Parameters
        ----------
        devices : sequence of Device
        by_kind : mapping of str to mapping of str to float, optional
            For each kind of task, seconds by device name or kind, where a task has none itself.
        """
        table = np.full((len(self.tasks), len(devices)), math.inf)
        known: Mapping[str, Mapping[str, float]] = by_kind or {}
        for row, task in zip(table, self.tasks, strict=True):
            times = task.seconds or known.get(task.kind, {})
            for column, device in enumerate(devices):
                row[column] = times.get(device.name, times.get(device.kind, math.inf))
        return table

    def demands(self) -> tuple[Floats, Floats]:
        """Demands of the shared resources, shape (tasks, resources), and what there is of each."""
        shape = (len(self.tasks), len(self.capacities))
        demand = np.array([task.resources or [0] * shape[1] for task in self.tasks], dtype=float)
        return demand.reshape(shape), np.array(self.capacities, dtype=float)


class Misfit(UsageError):
    """Something of a graph that cannot be, and where it stands."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(f"{place}: {problem}")
        self.place = place
        self.problem = problem


def checked(
    path: str | Path, tasks: Sequence[TaskRecord], name: str, capacities: Sequence[int] = ()
) -> GraphRecord:
    """A graph read from a file; what is wrong with it raises `FormatError`."""
    try:
        return GraphRecord(tuple(tasks), name, tuple(capacities))
    except Misfit as error:
        raise FormatError(path, error.place, error.problem) from None


def _check(index: int, task: TaskRecord, capacities: Sequence[int]) -> None:
    before = task.predecessors
    if before and not (min(before) >= 0 and max(before) < index):
        wrong = next(other for other in before if not 0 <= other < index)
        raise Misfit(f"tasks[{index}].predecessors", f"{task.name} cannot wait for task {wrong}")
    for name, amounts in (
        ("seconds", task.seconds.values()),
        ("reads", [size for _, size in task.reads]),
        ("writes", [size for _, size in task.writes]),
        ("flops", () if task.flops is None else (task.flops,)),
    ):
        for amount in amounts:
            if not 0 <= amount < math.inf:
                raise Misfit(f"tasks[{index}].{name}", f"{task.name} has {amount} there")
    if task.cores < 1:
        raise Misfit(f"tasks[{index}].cores", f"{task.name} takes {task.cores} workers")
    if task.resources:
        _check_demands(index, task, capacities)


def _check_demands(index: int, task: TaskRecord, capacities: Sequence[int]) -> None:
    place = f"tasks[{index}].resources"
    if len(task.resources) != len(capacities):
        given = len(task.resources)
        raise Misfit(place, f"{task.name} has {given} demands of {len(capacities)} resources")
    for number, (demand, capacity) in enumerate(zip(task.resources, capacities, strict=True)):
        if not 0 <= demand <= capacity:
            raise Misfit(f"{place}[{number}]", f"{task.name} demands {demand} of {capacity}")
