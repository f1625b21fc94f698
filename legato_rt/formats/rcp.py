"""Projects whose activities share limited resources, in Patterson's format (``.rcp``).

PSPLIB and RanGen instances come in it, see https://github.com/ScheduleOpt/benchmarks.  White space
separates the numbers: activities and resources; what there is of each resource; then for each
activity its duration, its demands, how many successors it has, and those, numbered from 1::

    4 1
    3
    0  0  2  2 3
    5  2  1  4
    4  2  1  4
    0  0  0
"""

from __future__ import annotations

from pathlib import Path

from legato_rt.files import as_text
from legato_rt.formats.recorded import GraphRecord, TaskRecord, checked
from legato_rt.formats.sorting import in_order
from legato_rt.formats.tokens import Numbers

MAX_ACTIVITIES = 10**6
MAX_RESOURCES = 1000


def parse_rcp(path: str | Path, content: bytes) -> GraphRecord:
    """Read a project; a unit of time becomes a second on a CPU.

    The path is for its name and for messages.

    Raises
    ------
    FormatError
        Naming the file and the line that cannot be used.
    """
    numbers = Numbers(path, as_text(path, content))
    count = numbers.next("the number of activities", 1, MAX_ACTIVITIES)
    resources = numbers.next("the number of resources", 0, MAX_RESOURCES)
    capacities = [numbers.next("a resource's capacity") for _ in range(resources)]
    times: list[int] = []
    demands: list[tuple[int, ...]] = []
    predecessors: list[list[int]] = [[] for _ in range(count)]
    for activity in range(count):
        times.append(numbers.next("a duration"))
        demands.append(tuple(numbers.next("a demand", 0, limit) for limit in capacities))
        for _ in range(numbers.next("the number of successors", 0, count)):
            predecessors[numbers.next("a successor", 1, count) - 1].append(activity)
    numbers.end()
    names = [str(activity + 1) for activity in range(count)]
    order, before = in_order(path, names, predecessors)
    tasks = [
        TaskRecord(
            names[at], "activity", waits, seconds={"cpu": float(times[at])}, resources=demands[at]
        )
        for at, waits in zip(order, before, strict=True)
    ]
    return checked(path, tasks, Path(path).stem, capacities)
