"""Directions of access, and what a task's signature says about them.

``In[T]``, ``Out[T]`` and ``InOut[T]`` read as ``T`` to a type checker.  A signature is analysed
once, when the task is decorated: the binder compiled here gives every call's arguments their
parameter and direction without `inspect`.
"""

from __future__ import annotations

import enum
import inspect
import keyword
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from legato_rt.errors import UsageError

T = TypeVar("T")


class Direction(enum.IntEnum):
    """How a task uses an argument: 1 reads, 2 writes, 3 both."""

    IN = 1
    OUT = 2
    INOUT = 3

    @property
    def reads(self) -> bool:
        """Whether what the data held before matters to the task."""
        return self != Direction.OUT

    @property
    def writes(self) -> bool:
        """Whether the data may be different afterwards."""
        return self != Direction.IN

    @classmethod
    def parse(cls, text: object) -> Direction:
        """Read ``"in"``, ``"out"`` or ``"inout"``; anything else raises `UsageError`."""
        if isinstance(text, Direction):
            return text
        if isinstance(text, str) and text.upper() in cls.__members__:
            return cls[text.upper()]
        raise UsageError(f"a direction is 'in', 'out' or 'inout', not {text!r}")


In: TypeAlias = Annotated[T, Direction.IN]
Out: TypeAlias = Annotated[T, Direction.OUT]
InOut: TypeAlias = Annotated[T, Direction.INOUT]

IN, OUT, INOUT = int(Direction.IN), int(Direction.OUT), int(Direction.INOUT)


class Signature:
    """Names, directions and a compiled binder for one function.

    Attributes
    ----------
    names : tuple of str
        The parameters that can be passed by position, in order.
    modes : tuple of int
        Their directions, as the integers of `Direction`.
    rest : tuple of (str, int) or None
        Name and direction of ``*args``.
    keywords : dict of str to int
        Directions of keyword-only parameters.
    rest_keywords : tuple of (str, int) or None
        Name and direction of ``**kwargs``.
    arity : int
        With that many positional arguments and no keywords nothing is left to bind; -1 if the
        function takes ``*args`` or keyword-only parameters.
    bind : callable
        ``bind(*args, **kwargs) -> (args, kwargs)`` with defaults filled in; raises the same
        `TypeError` as a call of the function would.
    """

    __slots__ = ("arity", "bind", "keywords", "modes", "names", "rest", "rest_keywords")

    def __init__(self, function: Callable[..., Any], overrides: Mapping[str, object]) -> None:
        parameters = list(inspect.signature(function).parameters.values())
        modes = _directions(function, parameters, overrides)
        positional = [p for p in parameters if p.kind in _POSITIONAL]
        self.names = tuple(p.name for p in positional)
        self.modes = tuple(modes[p.name] for p in positional)
        self.rest = _named(parameters, inspect.Parameter.VAR_POSITIONAL, modes)
        self.rest_keywords = _named(parameters, inspect.Parameter.VAR_KEYWORD, modes)
        self.keywords = {
            p.name: modes[p.name] for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY
        }
        simple = self.rest is None and not self.keywords
        self.arity = len(self.modes) if simple else -1
        self.bind = _compile_binder(getattr(function, "__name__", "task"), parameters)

    def takes(self, count: int) -> bool:
        """Whether that many positional arguments are bound already, with nothing to fill in."""
        named = len(self.modes)
        if self.keywords:
            return False
        return count == named or (count > named and self.rest is not None)

    def positional_modes(self, count: int) -> tuple[int, ...]:
        """Directions of that many positional arguments."""
        extra = count - len(self.modes)
        if not extra or self.rest is None:
            return self.modes
        return self.modes + (self.rest[1],) * extra

    def items(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None
    ) -> Iterator[tuple[str, int, Any]]:
        """Yield (parameter name, direction, value) for bound arguments."""
        yield from zip(self.names, self.modes, args, strict=False)
        if self.rest is not None:
            name, mode = self.rest
            for i, value in enumerate(args[len(self.names) :]):
                yield f"{name}[{i}]", mode, value
        if kwargs:
            for name, value in kwargs.items():
                yield name, self.keyword_mode(name), value

    def keyword_mode(self, name: str) -> int:
        """Direction of an argument that was bound by keyword."""
        mode = self.keywords.get(name)
        if mode is None:
            mode = self.rest_keywords[1] if self.rest_keywords is not None else IN
        return mode

    @property
    def reads_only(self) -> bool:
        """Whether no parameter is written."""
        modes = [*self.modes, *self.keywords.values()]
        modes += [rest[1] for rest in (self.rest, self.rest_keywords) if rest is not None]
        return all(mode == IN for mode in modes)


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _named(
    parameters: list[inspect.Parameter], kind: object, modes: Mapping[str, int]
) -> tuple[str, int] | None:
    for p in parameters:
        if p.kind is kind:
            return p.name, modes[p.name]
    return None


def _directions(
    function: Callable[..., Any],
    parameters: list[inspect.Parameter],
    overrides: Mapping[str, object],
) -> dict[str, int]:
    unknown = set(overrides) - {p.name for p in parameters}
    if unknown:
        name = getattr(function, "__name__", "task")
        raise UsageError(
            f"@task({sorted(unknown)[0]}=…) on {name}: neither an option of task "
            f"nor a parameter of {name}({', '.join(p.name for p in parameters)})"
        )
    hints = _hints(function)
    modes = {}
    for p in parameters:
        if p.name in overrides:
            direction = Direction.parse(overrides[p.name])
        else:
            direction = _direction(p.name, hints.get(p.name)) or Direction.IN
        modes[p.name] = int(direction)
    return modes


def _direction(name: str, hint: Any) -> Direction | None:
    """What a hint says, also as a member of a union; elsewhere inside it means nothing."""
    for mark in getattr(hint, "__metadata__", ()):
        if isinstance(mark, Direction):
            return mark
    origin = typing.get_origin(hint)
    if origin is None or origin is Literal or origin is Callable:
        return None
    found = {_direction(name, part) for part in typing.get_args(hint)} - {None}
    if found and origin not in (typing.Union, types.UnionType):
        raise UsageError(
            f"the hint of {name} has a direction inside: write InOut[list[T]], not list[InOut[T]]"
        )
    if len(found) > 1:
        raise UsageError(f"the hint of {name} has several directions: one for all of it is needed")
    return found.pop() if found else None


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError):
        # A hint that cannot be evaluated (a name under TYPE_CHECKING, a local of the enclosing
        # function) must not cost the other parameters their directions.
        return {
            name: _hint_alone(function, hint)
            for name, hint in getattr(function, "__annotations__", {}).items()
        }


def _hint_alone(function: Callable[..., Any], hint: Any) -> Any:
    if not isinstance(hint, str):
        return hint
    try:
        return eval(hint, getattr(function, "__globals__", {}))
    except Exception:
        for word in re.findall(r"[A-Za-z_][\w.]*", hint):
            direction = _DIRECTIONS.get(word.rsplit(".", 1)[-1]) or _alias(function, word)
            if direction is not None:
                return Annotated[Any, direction]
        return None


_DIRECTIONS = {"In": Direction.IN, "Out": Direction.OUT, "InOut": Direction.INOUT}


def _alias(function: Callable[..., Any], word: str) -> Direction | None:
    """The direction that a name in a hint stands for in the function's module."""
    try:
        return _direction(word, eval(word, getattr(function, "__globals__", {})))
    except Exception:
        return None


def _compile_binder(
    name: str, parameters: list[inspect.Parameter]
) -> Callable[..., tuple[tuple[Any, ...], dict[str, Any] | None]]:
    """Write a function of the same signature that returns its arguments, and compile it."""
    shown = name if name.isidentifier() and not keyword.iskeyword(name) else "task"
    declared: list[str] = []
    defaults: dict[str, Any] = {}
    args: list[str] = []
    kwargs: list[str] = []
    kinds = [p.kind for p in parameters]
    for i, p in enumerate(parameters):
        text = p.name
        if p.default is not inspect.Parameter.empty:
            defaults[f"_default_{i}"] = p.default
            text += f"=_default_{i}"
        if p.kind is inspect.Parameter.VAR_POSITIONAL:
            declared.append(f"*{p.name}")
            args.append(f"*{p.name}")
        elif p.kind is inspect.Parameter.VAR_KEYWORD:
            declared.append(f"**{p.name}")
            kwargs.append(f"**{p.name}")
        elif p.kind is inspect.Parameter.KEYWORD_ONLY:
            if "*" not in declared and inspect.Parameter.VAR_POSITIONAL not in kinds:
                declared.append("*")
            declared.append(text)
            kwargs.append(f"{p.name!r}: {p.name}")
        else:
            declared.append(text)
            args.append(p.name)
            if p.kind is inspect.Parameter.POSITIONAL_ONLY and (
                i + 1 == len(parameters) or kinds[i + 1] is not p.kind
            ):
                declared.append("/")
    tail = "{" + ", ".join(kwargs) + "}" if kwargs else "None"
    head = "(" + "".join(f"{a}, " for a in args) + ")"
    source = f"def {shown}({', '.join(declared)}):\n    return {head}, {tail}\n"
    namespace: dict[str, Any] = dict(defaults)
    exec(compile(source, f"<binder of {name}>", "exec"), namespace)
    return typing.cast(Callable[..., Any], namespace[shown])
