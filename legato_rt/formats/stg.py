"""Standard Task Graphs: random graphs for scheduling on identical processors, without transfers.

https://www.kasahara.cs.waseda.ac.jp/schedule/ holds them.  The first number is that of the tasks
without an entry and an exit of no length; then follows a line for each task: its number, its time,
how many predecessors it has, and those.  ``#`` begins a comment::

    2
    0  0  0
    1  5  1  0
    2  7  1  0
    3  0  2  1  2
    # ...
"""

from __future__ import annotations

from pathlib import Path

from legato_rt.files import as_text
from legato_rt.formats.recorded import GraphRecord, TaskRecord, checked
from legato_rt.formats.sorting import in_order
from legato_rt.formats.tokens import Numbers

MAX_TASKS = 10**7


def parse_stg(path: str | Path, content: bytes) -> GraphRecord:
    """Read a Standard Task Graph; a unit of time becomes a second on a CPU.

    The path is for its name and for messages.

    Raises
    ------
    FormatError
        Naming the file and the line that cannot be used.
    """
    numbers = Numbers(path, as_text(path, content), comment="#")
    count = numbers.next("the number of tasks", 0, MAX_TASKS) + 2
    times: list[int] = []
    predecessors: list[list[int]] = []
    for task in range(count):
        given = numbers.next("a task's number", 0, MAX_TASKS)
        if given != task:
            raise numbers.wrong(f"task {task} should follow, not {given}")
        times.append(numbers.next("its time"))
        many = numbers.next("the number of its predecessors", 0, count)
        predecessors.append([numbers.next("a predecessor", 0, count - 1) for _ in range(many)])
    numbers.end()
    names = [str(task) for task in range(count)]
    order, before = in_order(path, names, predecessors)
    tasks = [
        TaskRecord(names[task], "task", waits, seconds={"cpu": float(times[task])})
        for task, waits in zip(order, before, strict=True)
    ]
    return checked(path, tasks, Path(path).stem)
