"""What an argument holds: futures to wait for, and data to keep in order.

Values that cannot change (numbers, strings, functions, types) are not tracked.  Lists, tuples and
dicts are searched for futures and data; what they hold gets the direction of the parameter.  All
else that can change is tracked: arrays and buffers by their memory, other objects by identity.
Arrays of objects, and classes derived from list and dict, are searched for data too.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import functools
import pathlib
import types
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from legato_rt.access import IN, OUT
from legato_rt.errors import UsageError
from legato_rt.future import Future

ATOM, FUTURE, TUPLE, LIST, DICT, DATA = range(6)

KINDS: dict[type, int] = {
    **dict.fromkeys((int, float, complex, bool, str, bytes, type(None), range, slice), ATOM),
    **dict.fromkeys((frozenset, type(Ellipsis), type(NotImplemented), type), ATOM),
    **dict.fromkeys((types.FunctionType, types.BuiltinFunctionType, types.ModuleType), ATOM),
    **dict.fromkeys((decimal.Decimal, fractions.Fraction, uuid.UUID), ATOM),
    **dict.fromkeys((datetime.date, datetime.datetime, datetime.time, datetime.timedelta), ATOM),
    **dict.fromkeys((np.float64, np.float32, np.int64, np.int32, np.bool_), ATOM),
    tuple: TUPLE,
    list: LIST,
    dict: DICT,
    np.ndarray: DATA,
}
"""How to treat a value of exactly this type; `kind_of` tells for all others."""

_IMMUTABLE = (np.generic, np.dtype, enum.Enum, pathlib.PurePath, type, functools.partial)
_MAX_DEPTH = 100


def kind_of(value: object) -> int:
    """How to treat a value: one of the constants of this module."""
    known = KINDS.get(type(value))
    if known is not None:
        return known
    if isinstance(value, Future):
        return FUTURE
    if isinstance(value, tuple):
        return TUPLE
    if isinstance(value, _IMMUTABLE) and not isinstance(value, np.void):  # a record is a view
        return ATOM
    return DATA


class Contents:
    """Futures and data found in arguments, with the direction of each.

    Attributes
    ----------
    futures : list of Future
    data : list of (object, int)
        What is only written comes last.
    nested : bool
        Whether a future was found inside a container.
    stuck : str
        Type of a container that holds a future and cannot be copied with the value in its place.
    """

    __slots__ = ("data", "futures", "nested", "stuck")

    def __init__(self) -> None:
        self.futures: list[Any] = []
        self.data: list[tuple[Any, int]] = []
        self.nested = False
        self.stuck = ""

    def add(self, value: Any, mode: int, depth: int = 0) -> Contents:
        """Search one argument.

        Raises
        ------
        UsageError
            If containers are nested more than 100 deep (or contain themselves), or if a container
            that the task writes holds a future.
        """
        kind = kind_of(value)
        if kind == FUTURE:
            self.futures.append(value)
            self.nested = self.nested or depth > 0
        elif kind == DATA:
            self._note(value, mode)
            parts = parts_of(value)
            if parts is not None:
                self._look_into(value, parts, mode, depth)
        elif kind != ATOM:
            self._search(value, kind, mode, depth)
        return self

    def _look_into(self, value: Any, parts: Iterable[Any], mode: int, depth: int) -> None:
        """Search a container that is none of the built-in ones."""
        _check_depth(depth)
        before = len(self.futures)
        for item in parts:
            self.add(item, mode, depth + 1)
        if len(self.futures) > before:
            self.stuck = type(value).__name__

    def _search(self, value: Any, kind: int, mode: int, depth: int) -> None:
        _check_depth(depth)
        before = len(self.futures)
        for item in value.values() if kind == DICT else value:
            self.add(item, mode, depth + 1)
        if kind == TUPLE:
            return
        if len(self.futures) == before:
            self._note(value, mode)
        elif mode != IN:
            raise UsageError(
                f"a {type(value).__name__} that the task writes holds a future: the task gets a "
                "copy with the value in its place, so what it writes there would be lost"
            )

    def _note(self, value: Any, mode: int) -> None:
        if mode == OUT or not self.data:
            self.data.append((value, mode))
        else:
            at = len(self.data)
            while at and self.data[at - 1][1] == OUT:
                at -= 1
            self.data.insert(at, (value, mode))


def _check_depth(depth: int) -> None:
    if depth >= _MAX_DEPTH:
        raise UsageError(
            f"an argument nests more than {_MAX_DEPTH} lists, tuples or dicts, or one that "
            "contains itself"
        )


def parts_of(value: Any) -> Iterable[Any] | None:
    """What a container holds, seen without calling methods of its own; `None` for all others."""
    if isinstance(value, np.ndarray):
        return value.ravel().tolist() if value.dtype.char == "O" else None
    if isinstance(value, dict):
        return dict.values(value)
    if isinstance(value, tuple):
        return tuple.__iter__(value)
    return list.__iter__(value) if isinstance(value, list) else None


def holds(value: Any, future: object) -> bool:
    """Whether an argument is ``future`` or holds it inside a container."""
    if value is future:
        return True
    kind = kind_of(value)
    if kind in (TUPLE, LIST):
        return any(holds(item, future) for item in value)
    return kind == DICT and any(holds(item, future) for item in value.values())


def resolve(value: Any) -> Any:
    """An argument with every finished future in it replaced by its value."""
    kind = KINDS.get(type(value))
    if kind == ATOM:
        return value
    kind = kind_of(value)
    if kind == FUTURE:
        return value.value
    if kind == LIST:
        return [resolve(item) for item in value] if _has_future(value) else value
    if kind == DICT:
        if not _has_future(value):
            return value
        return {key: resolve(item) for key, item in value.items()}
    if kind == TUPLE and _has_future(value):
        items = [resolve(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def _has_future(value: Any) -> bool:
    kind = kind_of(value)
    if kind in (TUPLE, LIST):
        return any(_has_future(item) for item in value)
    if kind == DICT:
        return any(_has_future(item) for item in value.values())
    return kind == FUTURE


def arrays_in(value: Any) -> Iterator[Any]:
    """All arrays that an argument is or holds."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, np.void):
        yield np.asarray(value)
    for item in parts_of(value) or ():
        yield from arrays_in(item)


def rebuilt(value: Any, change: Callable[[Any], Any], depth: int = 0) -> Any:
    """A value with ``change`` applied to each array in it; containers are copied where needed."""
    if isinstance(value, np.ndarray):
        return change(value)
    kind = kind_of(value)
    if kind not in (TUPLE, LIST, DICT) or depth > 100:
        return value
    items = list(value.values() if kind == DICT else value)
    changed = [rebuilt(item, change, depth + 1) for item in items]
    if all(a is b for a, b in zip(items, changed, strict=True)):
        return value
    if kind == DICT:
        return dict(zip(value, changed, strict=True))
    if kind == LIST:
        return changed
    return type(value)(*changed) if hasattr(value, "_fields") else type(value)(changed)
