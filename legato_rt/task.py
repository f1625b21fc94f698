"""Tasks: annotated functions, their variants, and what a plain call does."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, ParamSpec, TypeVar, overload

from legato_rt.access import Signature
from legato_rt.context import current_runtime, frame, open_runtimes
from legato_rt.errors import UnsupportedError, UsageError
from legato_rt.future import Future

P = ParamSpec("P")
R = TypeVar("R")
_caller = sys._getframe
F = TypeVar("F", bound=Callable[..., Any])


class Variant:
    """One implementation of a task for one kind of device.

    Attributes
    ----------
    name : str
        Name of the function.
    kind : str
        The device kind it needs: ``cpu``, ``cuda``, ``opencl``, ``fpga`` or a driver's own.
    function : callable
        What runs; called with the task's arguments.
    when : callable or None
        Called with the task's arguments; the variant is used only where it returns true.
    """

    __slots__ = ("function", "kind", "name", "when")

    def __init__(
        self, kind: str, function: Callable[..., Any], when: Callable[..., object] | None
    ) -> None:
        self.name = getattr(function, "__qualname__", repr(function))
        self.kind = kind
        self.function = function
        self.when = when

    def __repr__(self) -> str:
        return f"<variant {self.name} for {self.kind}>"


class Options:
    """What ``task.options(...)`` may set for one submit.

    Attributes
    ----------
    priority : int
        Among ready tasks a higher one starts first.
    name : str or None
        Shown in place of the task's name.
    """

    __slots__ = ("name", "priority")

    def __init__(self, priority: int = 0, name: str | None = None) -> None:
        if isinstance(priority, bool) or not isinstance(priority, int):
            raise UsageError(f"priority is an integer, not {priority!r}")
        self.priority = priority
        self.name = name


DEFAULTS = Options()

variant_kinds: set[str] = {"cpu"}
"""Device kinds for which any task of the process has a variant."""


class Task(Generic[P, R]):
    """A function that runs as a task; made by :func:`task`.

    Calling it runs the reference body at once, in place.  `submit` makes it a node of the graph of
    the innermost open :class:`~legato_rt.Runtime`.

    Attributes
    ----------
    name : str
        Shown in reports.
    variants : tuple of Variant
        All implementations, the reference first.
    flops : callable or None
        Floating point operations of a call, from its arguments.
    rtol : float or None
        Relative difference allowed between variants.
    """

    def __init__(
        self,
        function: Callable[P, R],
        *,
        directions: Mapping[str, object],
        name: str | None = None,
        flops: Callable[..., float] | None = None,
        rtol: float | None = None,
    ) -> None:
        if inspect.iscoroutinefunction(function):
            raise UsageError(
                f"{function.__name__} is async: a task's body runs in the thread of a worker, so "
                "make it a plain function; its future can be awaited"
            )
        functools.update_wrapper(self, function)
        self.function = function
        self.name: str = name or str(getattr(function, "__name__", type(function).__name__))
        self.flops = flops
        self.rtol = rtol
        self.signature = Signature(function, directions)
        self.variants: tuple[Variant, ...] = (Variant("cpu", function, None),)

    def variant(self, kind: str, when: Callable[..., object] | None = None) -> Callable[[F], F]:
        """Register an implementation for another kind of device.

        Parameters
        ----------
        kind : str
            Device kind, for instance ``"opencl"``.
        when : callable, optional
            Called with the task's arguments; must be cheap and have no side effect.

        Returns
        -------
        callable
            A decorator that returns the function unchanged.
        """
        if callable(kind):
            raise UsageError(
                f"@{self.name}.variant needs a device kind: @{self.name}.variant('cpu')"
            )

        variant_kinds.add(kind)

        def register(function: F) -> F:
            self.variants = (*self.variants, Variant(kind, function, when))
            return function

        return register

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if open_runtimes:
            runtime = current_runtime()
            if runtime is not None:
                runtime.check_plain_call(self, args, kwargs)
        return self.function(*args, **kwargs)

    def submit(self, *args: Any, **kwargs: Any) -> Future[R]:
        """Make the call a node of the graph and return its `Future`.

        Arguments may be futures, also inside lists, tuples and dicts.

        Raises
        ------
        NoRuntimeError
            If no runtime is open.
        PlacementError
            If no device can take the task.
        """
        here: Any = frame.get()
        if here is None:
            here = current_runtime(required=True)
        future: Future[R] = here.runtime.submit(self, args, kwargs, DEFAULTS, _caller(1), here)
        return future

    def map(self, *iterables: Iterable[Any]) -> list[Future[R]]:
        """Submit once for each tuple of items, as the built-in ``map`` would call."""
        runtime = current_runtime(required=True)
        caller = _caller(1)
        return [
            runtime.submit(self, args, {}, DEFAULTS, caller)
            for args in zip(*iterables, strict=False)
        ]

    def options(self, **options: Any) -> BoundTask[R]:
        """The same task with options for the submits made through it (see `Options`)."""
        return BoundTask(self, (), parse_options(self.name, options))

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else BoundTask(self, (instance,), DEFAULTS)

    def __repr__(self) -> str:
        kinds = ", ".join(dict.fromkeys(v.kind for v in self.variants))
        return f"<task {self.name} ({kinds})>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _by_reference, (self.__module__, self.function.__qualname__)


class BoundTask(Generic[R]):
    """A task with its first arguments (a method's instance) or its options fixed."""

    __slots__ = ("_first", "_options", "task")

    def __init__(self, task: Task[..., R], first: tuple[Any, ...], options: Options) -> None:
        self.task = task
        self._first = first
        self._options = options

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        return self.task(*self._first, *args, **kwargs)

    def submit(self, *args: Any, **kwargs: Any) -> Future[R]:
        """See `Task.submit`."""
        runtime = current_runtime(required=True)
        args = (*self._first, *args)
        future: Future[R] = runtime.submit(self.task, args, kwargs, self._options, _caller(1))
        return future

    def map(self, *iterables: Iterable[Any]) -> list[Future[R]]:
        """See `Task.map`."""
        runtime = current_runtime(required=True)
        task, first, options, caller = self.task, self._first, self._options, _caller(1)
        return [
            runtime.submit(task, (*first, *args), {}, options, caller)
            for args in zip(*iterables, strict=False)
        ]

    def options(self, **options: Any) -> BoundTask[R]:
        """See `Task.options`."""
        return BoundTask(self.task, self._first, parse_options(self.task.name, options))


def parse_options(name: str, options: Mapping[str, Any]) -> Options:
    """Check the options of ``@task`` or ``.options``; unknown ones raise `UsageError`."""
    if "timeout" in options:
        raise UnsupportedError(
            f"{name}.options(timeout=…): a thread cannot be stopped from outside, so a limit on a "
            "task's time is refused; pass timeout= to result() to limit the waiting instead"
        )
    unknown = set(options) - set(Options.__slots__)
    if unknown:
        raise UsageError(
            f"{name}.options({sorted(unknown)[0]}=…): known options are "
            + ", ".join(sorted(Options.__slots__))
        )
    return Options(**options)


def _by_reference(module: str, qualname: str) -> Any:
    __import__(module)
    return functools.reduce(getattr, qualname.split("."), sys.modules[module])


@overload
def task(function: Callable[P, R], /) -> Task[P, R]: ...


@overload
def task(
    *,
    name: str | None = None,
    flops: Callable[..., float] | None = None,
    rtol: float | None = None,
    **directions: object,
) -> Callable[[Callable[P, R]], Task[P, R]]: ...


def task(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    flops: Callable[..., float] | None = None,
    rtol: float | None = None,
    **directions: object,
) -> Any:
    """Make a function a task.

    Parameters
    ----------
    name : str, optional
        Shown in reports; the function's name by default.
    flops : callable, optional
        Floating point operations of one call, from its arguments.
    rtol : float, optional
        Relative difference allowed between the results of its variants.
    **directions
        ``parameter="in" | "out" | "inout"`` for parameters without a hint.

    Returns
    -------
    Task
    """
    if "timeout" in directions:
        raise UnsupportedError("@task(timeout=…): a thread cannot be stopped from outside")

    def decorate(function: Callable[..., Any]) -> Task[..., Any]:
        if isinstance(function, Task):
            raise UsageError(f"{function.name} is a task already")
        if not callable(function):
            raise UsageError(f"@task decorates a function, not {function!r}")
        return Task(function, directions=directions, name=name, flops=flops, rtol=rtol)

    return decorate if function is None else decorate(function)
