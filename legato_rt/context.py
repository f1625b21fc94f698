"""Which runtime, and which running task, the code that asks belongs to.

A context variable holds the innermost open runtime, so nested runtimes and asyncio tasks see their
own.  A worker thread's context names the worker, which knows the task that it runs.
"""

from __future__ import annotations

import contextvars
from typing import TYPE_CHECKING, Any, Literal, Protocol, overload

from legato_rt.errors import NoRuntimeError

if TYPE_CHECKING:
    from legato_rt.node import Node


class Frame(Protocol):
    """Who submits: a runtime's user (``node`` is None) or a task that runs."""

    runtime: Any

    @property
    def node(self) -> Node | None:
        """The task whose body runs, if any."""


frame: contextvars.ContextVar[Frame | None] = contextvars.ContextVar("legato_rt", default=None)

open_runtimes: list[Any] = []
"""All runtimes of the process that are open, oldest first."""


@overload
def current_runtime(required: Literal[True]) -> Any: ...


@overload
def current_runtime(required: bool = ...) -> Any | None: ...


def current_runtime(required: bool = False) -> Any | None:
    """The innermost open runtime of this context, else the process's only open one.

    Raises
    ------
    NoRuntimeError
        If ``required`` and there is none, or several and the context names none of them.
    """
    here = frame.get()
    if here is not None:
        return here.runtime
    if len(open_runtimes) == 1:
        return open_runtimes[0]
    if not required:
        return None
    if open_runtimes:
        raise NoRuntimeError(
            f"{len(open_runtimes)} runtimes are open and this thread's context names none of them: "
            "run the thread with contextvars.copy_context().run(…), or call runtime.submit"
        )
    raise NoRuntimeError("submit needs an open runtime: with legato_rt.Runtime(): …")
