"""`History`: the cost model that learns from what ran on this machine.

A cell stands for one task, variant, device, operating point, width and size of arguments, and keeps
the last runs.  It tells their median, so a single strange run changes nothing:

* the first run is thrown away as soon as there is a second: it may have compiled the kernel;
* a run that is off by more than half is kept out, unless that happens three times running: then
  the cell was wrong, and starts anew from these three;
* a size that was never seen is inferred from others by a·n^b over declared operations or bytes.

StarPU's models (Augonnet, Thibault, Namyst, HPPC 2009) keep a mean per footprint; the median and
the restart are what keeps one bad sample from sending all tasks to one device.
"""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from legato_rt.arguments import FUTURE, arrays_in, kind_of
from legato_rt.costs import Call, Estimate
from legato_rt.machine import Device
from legato_rt.task import Task, Variant

WINDOW = 25
OFF = 0.5
RESTART_AFTER = 3


class Key(NamedTuple):
    """What a cell stands for.

    Attributes
    ----------
    task, variant : str
        Names; the variant's with a hash of its source, so that changed code is learned anew.
    device, point : str
    width : int
    shape : str
        Sizes and types of the arrays among the arguments, to within a quarter of a power of two.
    """

    task: str
    variant: str
    device: str
    point: str
    width: int
    shape: str


class Cell:
    """Recent runs of one key.

    Attributes
    ----------
    size : float
        Operations or bytes of the arguments, for inference.
    runs : list of float
        Seconds of the last runs, oldest first.
    count : int
        How many runs there were in all.
    joules_per_s : float or None
        Measured power, if anybody measured it.
    """

    __slots__ = ("count", "joules_per_s", "runs", "size", "strays")

    def __init__(self, size: float) -> None:
        self.size = size
        self.runs: list[float] = []
        self.strays: list[float] = []
        self.count = 0
        self.joules_per_s: float | None = None

    @property
    def seconds(self) -> float:
        """The median of the runs that count."""
        return median(self.runs)

    @property
    def spread(self) -> float:
        """Median absolute deviation of the runs that count, in seconds."""
        middle = self.seconds
        return median([abs(run - middle) for run in self.runs])

    def add(self, seconds: float, joules: float | None) -> None:
        """Learn from a run."""
        self.count += 1
        if joules is not None and seconds > 0:
            power = joules / seconds
            known = self.joules_per_s
            self.joules_per_s = power if known is None else known + 0.2 * (power - known)
        if self.count <= 2:
            self.runs = [seconds]
            return
        middle = self.seconds
        if abs(seconds - middle) > OFF * middle and abs(seconds - middle) > 5 * self.spread:
            self.strays.append(seconds)
            if len(self.strays) == RESTART_AFTER:
                self.runs, self.strays = self.strays, []
            return
        self.strays = []
        self.runs.append(seconds)
        del self.runs[:-WINDOW]


class History:
    """Learned costs of one machine; not safe to call from two threads at once."""

    def __init__(self) -> None:
        self.cells: dict[Key, Cell] = {}
        self._families: dict[tuple[str, str, str, str, int], list[Key]] = {}
        self._names: dict[Variant, str] = {}
        self._sizes: dict[tuple[Any, ...], tuple[str, float]] = {}

    def estimate(
        self, node: Call, device: Device, variant: Variant, point: str, width: int
    ) -> Estimate | None:
        """See `CostModel.estimate`."""
        shape, size = self._shape(node)
        key = Key(node.task.name, self._name(variant), device.name, point, width, shape)
        cell = self.cells.get(key)
        if cell is not None:
            seconds, samples = cell.seconds, cell.count
            power = cell.joules_per_s
        else:
            inferred = self._infer(key, size)
            if inferred is None:
                return None
            seconds, samples, power = inferred, 0, None
        if power is None:
            power = device.point(point).active_w * width
        return Estimate(seconds, seconds * power, samples)

    def observe(
        self,
        node: Call,
        device: Device,
        variant: Variant,
        point: str,
        width: int,
        seconds: float,
        joules: float | None = None,
    ) -> None:
        """See `CostModel.observe`."""
        shape, size = self._shape(node)
        key = Key(node.task.name, self._name(variant), device.name, point, width, shape)
        cell = self.cells.get(key)
        if cell is None:
            cell = self.put(key, Cell(size))
        cell.add(seconds, joules)

    def put(self, key: Key, cell: Cell) -> Cell:
        """Take in a cell, for instance one that was stored."""
        self.cells[key] = cell
        self._families.setdefault(key[:5], []).append(key)
        return cell

    def forget(self, matches: Callable[[Key], bool]) -> int:
        """Drop the cells whose key matches; return how many there were."""
        gone = [key for key in self.cells if matches(key)]
        for key in gone:
            del self.cells[key]
            self._families[key[:5]].remove(key)
        return len(gone)

    def _infer(self, key: Key, size: float) -> float | None:
        """Seconds for a size that was never seen, from the sizes that were."""
        cells = [self.cells[other] for other in self._families.get(key[:5], ())]
        known = {cell.size: cell.seconds for cell in cells if cell.size > 0 and cell.seconds > 0}
        if not known or size <= 0:
            return cells[0].seconds if cells else None
        if len(known) == 1:
            ((n, seconds),) = known.items()
            return seconds * size / n
        x = np.log(list(known))
        y = np.log(list(known.values()))
        exponent = float(np.clip(np.cov(x, y, bias=True)[0, 1] / max(np.var(x), 1e-12), 0.0, 4.0))
        return math.exp(float(y.mean()) + exponent * (math.log(size) - float(x.mean())))

    def _name(self, variant: Variant) -> str:
        name = self._names.get(variant)
        if name is None:
            name = self._names[variant] = f"{variant.name}@{_source_hash(variant.function)}"
        return name

    def _shape(self, node: Call) -> tuple[str, float]:
        """Size bucket of a call's arrays, and its operations or bytes."""
        arrays = tuple(_all_arrays(node.args, node.kwargs or {}))
        form = (node.task, *((a.dtype.char, a.shape) for a in arrays))
        known = self._sizes.get(form)
        if known is None:
            bucket = ",".join(f"{a.dtype.char}{_bucket(a.size)}" for a in arrays)
            known = self._sizes[form] = bucket, float(sum(a.nbytes for a in arrays))
        if node.task.flops is None:
            return known
        return known[0], _flops(node.task, node, known[1])


def _bucket(size: int) -> int:
    """Quarters of powers of two."""
    return round(4 * math.log2(size)) if size else -1


def _all_arrays(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[Any]:
    for value in (*args, *kwargs.values()):
        yield from arrays_in(value.value if kind_of(value) == FUTURE else value)


def _flops(task: Task[..., Any], node: Call, otherwise: float) -> float:
    """Declared operations of a call; its bytes where they cannot be told beforehand."""
    assert task.flops is not None
    args = [value.value if kind_of(value) == FUTURE else value for value in node.args]
    try:
        return float(task.flops(*args, **(node.kwargs or {})))
    except Exception:  # a user's function, asked for advice: it must not fail the task
        return otherwise


def _source_hash(function: Callable[..., Any]) -> str:
    """Changes when the variant's code does."""
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        code = getattr(function, "__code__", None)
        source = repr(code.co_code if code is not None else function)
    return hashlib.sha256(source.encode()).hexdigest()[:8]
