"""`Future`: what ``submit`` returns, with the methods of `concurrent.futures.Future`.

A future is the node of the graph itself (`legato_rt.graph.Node` adds what the scheduler needs), so
that a finished task costs one small object and no event or condition is made unless somebody waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar, cast

from legato_rt.errors import NEVER, DependencyError, LegatoError

R = TypeVar("R")

WAITING, READY, RUNNING, JOINING, FINISHED, FAILED, CANCELLED = range(7)
STATES = ("waiting", "ready", "running", "joining", "finished", "failed", "cancelled")

Callback = Callable[["Future[Any]"], object]


class Future(Generic[R]):
    """The result of a task that may not have run yet; awaitable."""

    __slots__ = ("__weakref__", "callbacks", "parent", "state", "value")

    parent: Any
    state: int
    value: Any
    callbacks: list[Callback] | None

    def result(self, timeout: float | None = None) -> R:
        """Wait for the task and return its value.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait at most; the task itself goes on after that.

        Raises
        ------
        TaskError
            If the task's body raised; the user's exception is the ``__cause__``.
        DependencyError
            If the task did not run because one that it needs failed.
        CancelledError
            If it was cancelled.
        TimeoutError
            If it is not done after ``timeout`` seconds.
        """
        error = self.exception(timeout)
        if error is not None:
            raise error
        return cast(R, self.parent.runtime.settle(self, timeout))

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the task and return what it raised, or `None`; raises as `result` does if the
        task was cancelled or the time is over."""
        runtime = self.parent.runtime
        if self.state < FINISHED or runtime.strict:
            runtime.wait_for(self, timeout)
        if self.state == FINISHED:
            return None
        deliver(self.value, runtime.moment())
        if self.state == CANCELLED:
            raise self.value
        return cast(BaseException, self.value)

    def done(self) -> bool:
        """Whether the task is over, in whatever way."""
        return self.state >= FINISHED

    def running(self) -> bool:
        """Whether the body has started and the task is not over."""
        return self.state in (RUNNING, JOINING)

    def cancelled(self) -> bool:
        """Whether the task was cancelled."""
        return self.state == CANCELLED

    def cancel(self) -> bool:
        """Cancel the task if it has not started; what depends on it fails.

        Returns
        -------
        bool
            Whether the task is cancelled now.
        """
        return cast(bool, self.parent.runtime.cancel(self))

    def add_done_callback(self, callback: Callback) -> None:
        """Call ``callback(future)`` when the task is over, at once if it is over already.

        An exception in a callback is logged and does not disturb the graph.
        """
        self.parent.runtime.add_callback(self, callback)

    def __await__(self) -> Generator[Any, None, R]:
        if self.state < FINISHED:
            loop = asyncio.get_running_loop()
            waiter = loop.create_future()

            def wake() -> None:
                if not waiter.done():
                    waiter.set_result(None)

            def done(_: Future[Any]) -> None:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(wake)

            self.add_done_callback(done)
            yield from waiter
        return self.result()

    def __repr__(self) -> str:
        return f"<future {getattr(self, 'title', '?')}: {STATES[self.state]}>"

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(
            "a Future belongs to the process of its runtime: pass it as an argument of submit, or "
            "its result()"
        )


def deliver(error: BaseException, moment: int) -> None:
    """Note when the program saw a failure, so that it is not raised again at the end.

    Parameters
    ----------
    moment : int
        A number of the runtime's count of submits, taken now.
    """
    if isinstance(error, DependencyError):
        for root in error.roots:
            deliver(root, moment)
    elif isinstance(error, LegatoError) and error.delivered == NEVER:
        error.delivered = moment


def is_delivered(error: BaseException, before: int = NEVER) -> bool:
    """Whether the program has seen a failure, and saw it before a certain submit."""
    if isinstance(error, DependencyError):
        return all(is_delivered(root, before) for root in error.roots)
    return not isinstance(error, LegatoError) or error.delivered < before
