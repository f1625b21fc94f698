"""Chunks of a captured graph: tasks that run in one body, as straight-line code.

Tasks too small to be worth a hand-over between threads share a chunk, whose code is written once::

    def chunk(v, own):
        v[0] = own(f0(k0))
        v[1] = own(f1(v[0], k1), v[0])

Each task is one line, so the line that a traceback names tells which task raised.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from legato_rt import context
from legato_rt.arguments import ATOM, DICT, FUTURE, KINDS, LIST, TUPLE, kind_of, rebuilt
from legato_rt.errors import DependencyError, LegatoError, TaskError
from legato_rt.node import Step
from legato_rt.outcomes import PassedOn
from legato_rt.ownership import own_value

TINY_NS = 20_000
"""Below that a hand-over between threads costs more than the body."""

MAX_LINES = 500


class Run:
    """Values and failures of one run of a graph, by step.

    Attributes
    ----------
    swap : callable or None
        Replaces captured arrays by those of this run.
    """

    __slots__ = ("failed", "replayer", "swap", "values")

    def __init__(self, replayer: Any, count: int, swap: Callable[[Any], Any] | None) -> None:
        self.replayer = replayer
        self.swap = swap
        self.values: list[Any] = [None] * count
        self.failed: dict[int, LegatoError] = {}


class Chunk:
    """Steps that run one after the other in one body.

    Attributes
    ----------
    steps : list of int
        In order of capture.
    before : list of int
        Chunks that must be over first.
    """

    def __init__(self, steps: list[int], before: list[int]) -> None:
        self.steps = steps
        self.before = before
        self._codes: list[tuple[types.FunctionType, list[int]]] = []

    def functions(self, run: Run) -> list[tuple[types.FunctionType, list[int]]]:
        """The code with the constants of a run, each piece with its steps."""
        if not self._codes:
            for start in range(0, len(self.steps), MAX_LINES):
                part = self.steps[start : start + MAX_LINES]
                self._codes.append((_compiled(run.replayer, part), part))
        if run.swap is None:
            return self._codes
        return [(_rebound(function, run.swap), part) for function, part in self._codes]


def group(steps: Sequence[Step], means_ns: Sequence[float]) -> list[Chunk]:
    """Group steps into chunks, given how long each takes on average.

    A graph of tiny steps is one chunk.  Else a tiny step joins the chunk of its predecessors where
    that is one chunk, which can never close a cycle; all others are chunks of their own.
    """
    if not steps:
        return []
    if sum(means_ns) < TINY_NS * len(steps):
        return [Chunk(list(range(len(steps))), [])]
    chunk_of: list[int] = []
    chunks: list[Chunk] = []
    for number, step in enumerate(steps):
        before = sorted({chunk_of[i] for i in (*step.values, *step.orders)})
        if means_ns[number] < TINY_NS and len(before) == 1:
            chunks[before[0]].steps.append(number)
            chunk_of.append(before[0])
        else:
            chunk_of.append(len(chunks))
            chunks.append(Chunk([number], before))
    return chunks


def play_chunk(run: Run, chunk: Chunk) -> None:
    """Run the steps of a chunk; a failed one fails those that need it, the others go on.

    Raises
    ------
    PassedOn
        With the first failure, after all steps.
    """
    here = context.frame.get()
    assert here is not None
    runtime, node = here.runtime, here.node
    assert node is not None

    def own(value: Any, *given: Any) -> Any:
        """The value of a step, apart from tracked data and from the values that it was given."""
        if KINDS.get(type(value)) == ATOM:
            return value
        value = own_value(runtime, node, value)
        shared = [g for g in given if isinstance(g, np.ndarray)]
        return rebuilt(value, lambda a: a.copy() if _shares_any(a, shared) else a)

    failed = False
    for function, part in chunk.functions(run):
        start = 0
        if not run.failed:
            try:
                function(run.values, own)
                continue
            except BaseException as error:
                start = _line_of(error, function)
                run.failed[part[start]] = _failure(run, part[start], error)
                start += 1
        _go_on(run, part[start:], own)
        failed = True
    if failed:
        for mine in (run.failed[i] for i in chunk.steps if i in run.failed):
            if isinstance(mine, TaskError):
                raise PassedOn(mine)


def _go_on(run: Run, steps: Sequence[int], own: Callable[[Any], Any]) -> None:
    """Run steps one by one, in a run in which some have failed."""
    for number in steps:
        step = run.replayer.steps[number]
        broken = [i for i in step.values if i in run.failed]
        if broken:
            names = " and ".join(run.replayer.steps[i].node.title for i in broken)
            run.failed[number] = DependencyError(
                f"{step.node.title} did not run because {names} did not finish",
                [run.failed[i] for i in broken],
            )
            continue
        function = _compiled(run.replayer, [number])
        if run.swap is not None:
            function = _rebound(function, run.swap)
        try:
            function(run.values, own)
        except BaseException as error:
            run.failed[number] = _failure(run, number, error)


def _shares_any(array: Any, others: Sequence[Any]) -> bool:
    return any(np.may_share_memory(array, other) for other in others)


def _failure(run: Run, number: int, error: BaseException) -> TaskError:
    node = run.replayer.steps[number].node
    failure = TaskError(
        f"{type(error).__name__} in {node.title} of a replayed graph, captured at {node.where}",
        task=node.task.name,
        where=node.where,
        variant=node.task.variants[0].name,
        device="cpu",
    )
    failure.__cause__ = error
    return failure


def _line_of(error: BaseException, function: types.FunctionType) -> int:
    """Which line of the generated code raised, counted from its first statement."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code is function.__code__:
            return trace.tb_lineno - 2
        trace = trace.tb_next
    return 0


def _compiled(replayer: Any, steps: Sequence[int]) -> types.FunctionType:
    """Straight-line code for steps; functions and constants are its globals."""
    constants: dict[str, Any] = {}
    names: dict[int, str] = {}

    def name(value: Any) -> str:
        known = names.get(id(value))
        if known is None:
            known = names[id(value)] = f"k{len(names)}"
            constants[known] = value
        return known

    lines = ["def chunk(v, own):"]
    for number in steps:
        node = replayer.steps[number].node
        arguments = [_expression(value, name) for value in node.args]
        arguments += [f"{k}={_expression(v, name)}" for k, v in (node.kwargs or {}).items()]
        called = name(replayer.function_of(node))
        given = "".join(f", v[{i}]" for i in replayer.steps[number].values)
        lines.append(f"    v[{number}] = own({called}({', '.join(arguments)}){given})")
    exec(compile("\n".join(lines), "<replayed graph>", "exec"), constants)
    made: types.FunctionType = constants.pop("chunk")
    return made


def _rebound(function: types.FunctionType, swap: Callable[[Any], Any]) -> types.FunctionType:
    constants = {
        name: swap(value) if name.startswith("k") else value
        for name, value in function.__globals__.items()
    }
    return types.FunctionType(function.__code__, constants)


def _expression(value: Any, name: Callable[[Any], str]) -> str:
    """Source of an argument: a constant's name, or the place of an earlier value."""
    kind = kind_of(value)
    if kind == FUTURE:
        return f"v[{value.seq}]" if hasattr(value, "seq") else name(value)
    if kind in (LIST, TUPLE, DICT) and _mentions(value):
        if kind == DICT:
            items = [f"{name(k)}: {_expression(v, name)}" for k, v in value.items()]
            return "{" + ", ".join(items) + "}"
        items = [_expression(item, name) for item in value]
        if kind == LIST:
            return f"[{', '.join(items)}]"
        if hasattr(value, "_fields"):
            return f"{name(type(value))}({', '.join(items)})"
        return "(" + "".join(f"{item}, " for item in items) + ")"
    return name(value)


def _mentions(value: Any) -> bool:
    kind = kind_of(value)
    if kind in (LIST, TUPLE):
        return any(map(_mentions, value))
    if kind == DICT:
        return any(map(_mentions, value.values()))
    return kind == FUTURE


def substituted(value: Any, values: Sequence[Any]) -> Any:
    """A captured argument with recorded nodes replaced by the values of a run."""
    kind = kind_of(value)
    if kind == FUTURE:
        return values[value.seq]
    if not _mentions(value):
        return value
    if kind == DICT:
        return {key: substituted(item, values) for key, item in value.items()}
    items = [substituted(item, values) for item in value]
    if kind == LIST:
        return items
    return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
