"""Whose data it is: waiting for data and futures, and lending data back to the program.

From its submit on, what a task uses belongs to the graph.  It is the program's again after
`Lending.wait`, inside `Lending.host`, or when a future's result was asked for.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

from legato_rt import context
from legato_rt.access import IN, INOUT, Direction
from legato_rt.arguments import ATOM, KINDS, Contents
from legato_rt.errors import LentDataError, UsageError
from legato_rt.executor.base import Executor
from legato_rt.future import FINISHED, RUNNING, Future, deliver
from legato_rt.node import Node, Scope
from legato_rt.placement import HOST, Plan
from legato_rt.strict import Guard
from legato_rt.task import Options, Task, task


class Deadline:
    """A time limit that several waits share.

    Parameters
    ----------
    timeout : float or None
        Seconds from now; `None` for no limit.
    """

    def __init__(self, timeout: float | None = None) -> None:
        self._end = None if timeout is None else time.monotonic() + timeout

    def left(self) -> float | None:
        """Seconds that are left, or `None` without a limit."""
        return None if self._end is None else max(self._end - time.monotonic(), 0.0)


class Lending:
    """Waits, on behalf of one runtime, for tasks to be done with something."""

    def __init__(self, executor: Executor, guard: Guard | None) -> None:
        self.executor = executor
        self.graph = executor.scheduler.graph
        self.guard = guard

    def wait(self, items: tuple[Any, ...], scope: Scope, deadline: Deadline) -> None:
        """Wait for data and futures, or for the whole scope; raise what they failed with."""
        if not items:
            self.scope(scope, deadline)
            if self.executor.transfers is not None:
                self.executor.transfers.bring_all_home()
            self.reclaim()
            return
        contents = Contents()
        for item in items:
            contents.add(item, INOUT)
        for future in contents.futures:
            future.result(deadline.left())
        for item, _ in contents.data:
            self.data(item, INOUT, scope, deadline)
            self.bring_home(item, INOUT)
            with self.executor.lock:
                failed = self.graph.failures(item, scope)
            for node in failed:
                deliver(node.value, scope.runtime.moment())
                raise node.value
        self.reclaim()

    @contextlib.contextmanager
    def host(self, item: Any, mode: object, scope: Scope, number: int) -> Iterator[Any]:
        """Hold an access of the program itself for the length of a ``with`` block."""
        direction = int(Direction.parse(mode))
        granted = _open_future()
        caller = sys._getframe(2)  # the with statement: contextlib is in between
        node = Node(scope, number, _HOST_PLAN, (granted,), None, Options(), caller)
        node.choice = HOST
        with self.executor.step() as scheduler:
            scheduler.submit(node, None, Contents().add(item, direction).data)
        # If the access fails, so does the wait for it.
        node.add_done_callback(lambda _: self._open(granted))
        self.futures([granted], Deadline(), "the data")
        if node.state >= FINISHED:
            deliver(node.value, scope.runtime.moment())
            raise node.value
        self.reclaim(item)
        self.bring_home(item, direction)
        try:
            yield item
        finally:
            with self.executor.step() as scheduler:
                scheduler.finish(node, None, -1, onward=False)

    def settle(self, future: Future[Any], timeout: float | None) -> Any:
        """The value of a finished future, once no task writes it any more."""
        value = future.value
        if KINDS.get(type(value)) != ATOM:
            deadline = Deadline(timeout)
            for item, _ in Contents().add(value, IN).data:
                self.data(item, IN, future.parent, deadline)
                self.bring_home(item, IN)
        return value

    def scope(self, scope: Scope, deadline: Deadline) -> None:
        """Return when nothing that was submitted in a scope is pending."""
        with self.executor.lock:
            if not scope.pending:
                return
            barrier = _open_future()
            scope.barriers.append(barrier)
        self.futures([barrier], deadline, "all tasks")

    def data(self, item: Any, mode: int, scope: Scope, deadline: Deadline) -> None:
        """Return when an access to ``item`` would have to wait for nobody."""
        here = context.frame.get()
        mine = here.node if here is not None and here.runtime is scope.runtime else None
        while True:
            with self.executor.lock:
                users = self.graph.users(item, mode, scope)
            users = [node for node in users if not _is_above(node, mine)]
            if not users:
                return
            self.futures(users, deadline, "the data")

    def futures(self, futures: list[Any], deadline: Deadline, what: str) -> None:
        """Return when all futures are done.

        Raises
        ------
        TimeoutError
        UsageError
            If the wait could not end, because it is for the body that asks.
        """
        timeout = deadline.left()
        done = self.executor.wait(futures, timeout)
        self.reclaim()
        if not done:
            if timeout is None:
                raise UsageError(f"{what} cannot be waited for: it waits for the body that asks")
            raise TimeoutError(f"{what} is not done in time")

    def bring_home(self, item: Any, mode: int) -> None:
        """Make data that a device may hold valid in host memory."""
        if self.executor.transfers is not None:
            self.executor.transfers.bring_home(item, mode)

    def reclaim(self, granted: Any = None) -> None:
        """Under ``strict``, make writable what is the program's again."""
        if self.guard is not None:
            with self.executor.lock:
                self.guard.reclaim(granted)

    def check_plain_call(
        self, task: Task[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], scope: Scope
    ) -> None:
        """Refuse a plain call with a future, or on data that unfinished tasks use."""
        args, bound = task.signature.bind(*args, **kwargs)
        contents = Contents()
        for _, mode, value in task.signature.items(args, bound):
            contents.add(value, mode)
        if contents.futures:
            raise UsageError(
                f"{task.name}(…) was called with a Future: use {task.name}.submit(…), or pass "
                "its result()"
            )
        with self.executor.lock:
            users = [
                node for item, mode in contents.data for node in self.graph.users(item, mode, scope)
            ]
        if users:
            raise LentDataError(
                f"{task.name}(…) was called on data that {users[0].title} (submitted at "
                f"{users[0].where}) uses: call {task.name}.submit(…), or legato_rt.wait(…) first"
            )
        for item, mode in contents.data:
            self.bring_home(item, mode)

    def _open(self, barrier: Future[None]) -> None:
        with self.executor.step():
            if barrier.state < FINISHED:
                barrier.state = FINISHED
                self.executor.scheduler.completed.append(barrier)


def _open_future() -> Future[None]:
    future: Future[None] = Future()
    future.state = RUNNING
    future.value = future.callbacks = future.parent = None
    return future


def _is_above(node: Node, body: Node | None) -> bool:
    """Whether a node is the body that asks, or one of the tasks that it is part of."""
    while body is not None:
        if body is node:
            return True
        body = body.parent.node
    return False


@task(name="host access")
def _host_access(granted: object) -> None:
    """Stands for what the program does; never runs."""


_HOST_PLAN = Plan(_host_access, {"host": ("cpu",)}, False)
