"""Bringing a file's tasks into topological order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from legato_rt.errors import FormatError, UsageError
from legato_rt.order import Dag


def in_order(
    path: str | Path, names: Sequence[str], predecessors: Sequence[Sequence[int]]
) -> tuple[list[int], list[tuple[int, ...]]]:
    """Sort tasks so that each comes after its predecessors; the file's order where it does.

    Returns
    -------
    order : list of int
        Which task of the file comes at each place.
    predecessors : list of tuple of int
        Those of the task at each place, by the new numbers.

    Raises
    ------
    FormatError
        If the tasks form a cycle, which is then named.
    """
    try:
        order = Dag.from_predecessors(predecessors, names).order.tolist()
    except UsageError as error:
        raise FormatError(path, "", str(error)) from None
    place = {task: at for at, task in enumerate(order)}
    return order, [tuple(sorted(place[before] for before in predecessors[t])) for t in order]
