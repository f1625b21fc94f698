"""`Runtime`: the scheduler, an executor and the devices tied together, and what users call."""

from __future__ import annotations

import contextlib
import itertools
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FrameType, TracebackType
from typing import Any

from legato_rt import context
from legato_rt.access import IN, INOUT, Direction
from legato_rt.arguments import ATOM, KINDS, Contents
from legato_rt.backend import backends, discover
from legato_rt.errors import ClosedError, LentDataError, SettingError, UsageError
from legato_rt.executor import executor_class
from legato_rt.executor.base import Slot, Totals, add_up
from legato_rt.future import FINISHED, RUNNING, Future, deliver, is_delivered
from legato_rt.graph import Node, Scope
from legato_rt.invariants import CheckedScheduler
from legato_rt.machine import Machine
from legato_rt.placement import HOST, Plan
from legato_rt.policy import make_policy
from legato_rt.policy.base import Policy
from legato_rt.report import Report, summarise
from legato_rt.scheduler import Scheduler
from legato_rt.settings import Settings
from legato_rt.task import Options, Task, task
from legato_rt.trace import Record, Trace


class Runtime:
    """Runs submitted tasks on the devices of a machine.

    Use it as a context manager: leaving the block waits for all tasks and raises the failures that
    the program has not seen, as one `ExceptionGroup`.  If the block itself raises, what has not
    started is cancelled.

    Parameters
    ----------
    workers : int, optional
        Worker threads of the CPU; by default one for each core.
    devices : str or iterable of str, optional
        Names or kinds of the devices to use; by default all real ones.
    policy : str or Policy, optional
        Which ready task a worker gets next: ``"steal"`` or ``"fifo"``, or a policy of your own.
    executor : str, optional
        ``"threads"``, or ``"serial"`` to run every submit on the spot.
    reproducible : bool, optional
        Fix each task's variant independently of measurement and load, so that results are equal bit
        for bit on any executor, policy and number of workers.
    strict : bool, optional
        Refuse what is otherwise only documented: `In` arguments are read-only in the body, and a
        returned value must not share memory with tracked data.
    trace : bool, optional
        Keep a record of every body that runs, in `trace`.
    validate : bool, optional
        Check the scheduler's invariants after every step; slow, for tests.

    Each can also be set as ``LEGATO_RT_<NAME>`` or in ``legato_rt.toml``; arguments win.

    Raises
    ------
    SettingError
        If a value cannot be used.
    """

    node = None  # as a frame: what the program itself submits has no parent

    def __init__(
        self,
        *,
        workers: int | None = None,
        devices: str | Iterable[str] | None = None,
        policy: str | Policy | None = None,
        executor: str | None = None,
        reproducible: bool | None = None,
        strict: bool | None = None,
        trace: bool | None = None,
        validate: bool = False,
    ) -> None:
        settings = Settings.load(
            workers=workers,
            devices=devices,
            policy=policy if not isinstance(policy, Policy) else None,
            executor=executor,
            reproducible=reproducible,
            strict=strict,
            trace=trace,
        )
        chosen = executor_class(settings.executor)
        self.reproducible = settings.reproducible
        self.strict = settings.strict
        self.keeps_trace = settings.trace
        self.machine = _machine(settings)
        self._accepts = {d.name: d.accepts for d in self.machine.devices}
        self._slots = _open_slots(self.machine)
        scheduler = CheckedScheduler if validate else Scheduler
        self.scheduler = scheduler(
            make_policy(policy if isinstance(policy, Policy) else settings.policy),
            [slot.device.name for slot in self._slots],
        )
        self.runtime = self
        self._root = Scope(self, None)
        self._plans: dict[Task[..., Any], Plan] = {}
        self._numbers = itertools.count()
        self._state = "open"
        self._opened = time.perf_counter()
        self._closed: float | None = None
        self._tokens: list[Any] = []
        self.executor = chosen(self, self.scheduler, self._slots)
        self.executor.start()
        context.open_runtimes.append(self)

    # -- life -------------------------------------------------------------------------------

    def __enter__(self) -> Runtime:
        if self._state != "open":
            raise ClosedError("a closed runtime cannot be entered again: make a new one")
        self._tokens.append(context.frame.set(self))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        context.frame.reset(self._tokens.pop())
        self.close(cancel=error is not None)
        failures = [f for f in self._root.failures if not is_delivered(f)]
        if error is None and failures:
            for failure in failures:
                deliver(failure)
            raise ExceptionGroup(f"{len(failures)} tasks failed", failures)

    def close(self, cancel: bool = False) -> None:
        """Wait for all tasks and end the workers; closing twice does nothing.

        Parameters
        ----------
        cancel : bool
            Cancel what has not started.
        """
        if self._state == "closed":
            return
        try:
            self._drain(cancel)
        except KeyboardInterrupt:
            # Bodies that run cannot be stopped, only waited for; a second interrupt gives up.
            self._drain(cancel=True)
            raise
        finally:
            self._state = "closed"
            if self in context.open_runtimes:
                context.open_runtimes.remove(self)
            self.executor.stop()
            for session in {id(s.session): s.session for s in self._slots}.values():
                session.close()
            self._closed = time.perf_counter()

    def _drain(self, cancel: bool) -> None:
        if cancel:
            self._state = "closing"
            with self.executor.lock:
                self.scheduler.cancel_all()
                self.executor.obey()
                completed = self.executor.take_completed()
            self.executor.call_back(completed)
        self._await_scope(self._root, _Deadline(None))

    # -- submitting -------------------------------------------------------------------------

    def submit(
        self,
        task: Task[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        options: Options,
        frame: FrameType,
    ) -> Future[Any]:
        """Add a node; `Task.submit` is what users call."""
        signature = task.signature
        bound: dict[str, Any] | None = None
        if kwargs or not signature.simple or len(args) != len(signature.modes):
            args, bound = signature.bind(*args, **kwargs)
        plan = self._plans.get(task)
        if plan is None or plan.source is not task.variants:
            plan = self._plans[task] = Plan(task, self._accepts, self.reproducible)
        node = Node(self._scope(), next(self._numbers), plan, args, bound, options, frame)
        contents = None
        if bound or not all([KINDS.get(type(value)) == ATOM for value in args]):
            contents = self._search(node)
        if plan.fixed is not None:
            node.choice = plan.fixed
        elif not node.holes:
            node.choice = plan.choice(args, bound)
        executor = self.executor
        with executor.lock:
            if self._state != "open":
                self._refuse(node)
            if contents is None:
                self.scheduler.submit(node, None, None)
            else:
                self.scheduler.submit(node, contents.futures, contents.data)
            executor.obey()
            completed = executor.take_completed()
        if completed:
            executor.call_back(completed)
        executor.submitted()
        return node

    def _refuse(self, node: Node) -> None:
        """A closing runtime takes nothing new but the children of bodies that still run."""
        if self._state == "closed" or node.parent.node is None or self.scheduler.closing:
            raise ClosedError(f"{node.title} was submitted to a runtime that is {self._state}")

    def _scope(self) -> Scope:
        """The scope of whoever calls: the body that runs here, or the program."""
        here = context.frame.get()
        if here is None or here.runtime is not self:
            return self._root
        node = here.node
        if node is None or node.state >= FINISHED:
            return self._root
        if node.scope is None:
            with self.executor.lock:
                node.scope = node.scope or Scope(self, node)
        return node.scope

    def _search(self, node: Node) -> Contents:
        contents = Contents()
        for name, mode, value in node.task.signature.items(node.args, node.kwargs):
            try:
                contents.add(value, mode)
            except UsageError as error:
                raise UsageError(f"{node.task.name}({name}=…): {error}") from None
        for future, _ in contents.futures:
            node.holes = True
            if future.parent.runtime is not self and not future.done():
                raise UsageError(
                    f"an argument of {node.title} is a future of another runtime: "
                    "pass its result() instead"
                )
        return contents

    # -- waiting ----------------------------------------------------------------------------

    def wait(self, *items: Any, timeout: float | None = None) -> None:
        """Wait for data and futures: afterwards they are the caller's again.

        Parameters
        ----------
        *items
            Arrays, other tracked objects, futures, or lists of them; nothing for all that the
            caller submitted.
        timeout : float, optional
            Seconds to wait at most.

        Raises
        ------
        TaskError, DependencyError
            If a task that should have written one of the items failed.
        TimeoutError
        """
        scope = self._scope()
        deadline = _Deadline(timeout)
        if not items:
            self._await_scope(scope, deadline)
            return
        contents = Contents()
        for item in items:
            contents.add(item, INOUT)
        for future, _ in contents.futures:
            future.result(deadline.left())
        for item, _ in contents.data:
            self._await_data(item, INOUT, scope, deadline)
            with self.executor.lock:
                failed = self.scheduler.graph.failures(item, scope)
            for node in failed:
                deliver(node.value)
                raise node.value

    @contextlib.contextmanager
    def host(self, item: Any, mode: str = "in") -> Iterator[Any]:
        """Lend data back to the program for the length of a ``with`` block.

        Parameters
        ----------
        item : object
            An array, or another tracked object.
        mode : {"in", "out", "inout"}
            What the block does with it; tasks submitted inside the block wait accordingly.
        """
        direction = int(Direction.parse(mode))
        scope = self._scope()
        granted: Future[None] = _open_future()
        node = Node(
            scope, next(self._numbers), _HOST_PLAN, (granted,), None, Options(), sys._getframe(2)
        )
        node.choice = HOST
        with self.executor.lock:
            self.scheduler.submit(node, None, Contents().add(item, direction).data)
            self.executor.obey()
            completed = self.executor.take_completed()
        self.executor.call_back(completed)
        self._wait([granted], None, "the data")
        if node.state >= FINISHED:
            deliver(node.value)
            raise node.value
        try:
            yield item
        finally:
            with self.executor.lock:
                self.scheduler.finish(node, None, -1, onward=False)
                self.executor.obey()
                completed = self.executor.take_completed()
            self.executor.call_back(completed)
            self.executor.submitted()

    def wait_for(self, future: Future[Any], timeout: float | None) -> None:
        """Return when a future is done; what `Future.result` calls."""
        self._wait([future], timeout, repr(future))

    def settle(self, future: Future[Any], timeout: float | None) -> Any:
        """The value of a finished future, once no task writes it any more."""
        value = future.value
        if KINDS.get(type(value)) != ATOM:
            for item, _ in Contents().add(value, IN).data:
                self._await_data(item, IN, future.parent, _Deadline(timeout))
        return value

    def wait_for_children(self, node: Node) -> None:
        """Return when all children of a running node are over."""
        assert node.scope is not None
        self._await_scope(node.scope, _Deadline(None))

    def _await_scope(self, scope: Scope, deadline: _Deadline) -> None:
        with self.executor.lock:
            if not scope.pending:
                return
            barrier: Future[None] = _open_future()
            scope.barriers.append(barrier)
        self._wait([barrier], deadline.left(), "all tasks")

    def _await_data(self, item: Any, mode: int, scope: Scope, deadline: _Deadline) -> None:
        here = context.frame.get()
        mine = here.node if here is not None and here.runtime is self else None
        while True:
            with self.executor.lock:
                users = self.scheduler.graph.users(item, mode, scope)
            users = [node for node in users if not _is_above(node, mine)]
            if not users:
                return
            self._wait(users, deadline.left(), "the data")

    def _wait(self, futures: list[Any], timeout: float | None, what: str) -> None:
        if not self.executor.wait(futures, timeout):
            if timeout is None:
                raise UsageError(f"{what} cannot be waited for: it waits for the body that asks")
            raise TimeoutError(f"{what} is not done after {timeout:g} s")

    # -- futures ----------------------------------------------------------------------------

    def cancel(self, node: Node) -> bool:
        """Cancel a node that has not started; what `Future.cancel` calls."""
        with self.executor.lock:
            cancelled = self.scheduler.cancel(node)
            self.executor.obey()
            completed = self.executor.take_completed()
        self.executor.call_back(completed)
        self.executor.submitted()
        return cancelled

    def add_callback(self, node: Node, callback: Callable[[Future[Any]], object]) -> None:
        """What `Future.add_done_callback` calls."""
        with self.executor.lock:
            over = node.state >= FINISHED
            if not over:
                node.callbacks = [*(node.callbacks or ()), callback]
        if over:
            node.callbacks = [callback]
            self.executor.call_back([node])

    def check_plain_call(
        self, task: Task[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        """Refuse a plain call with a future, or on data that unfinished tasks use.

        Raises
        ------
        UsageError, LentDataError
        """
        args, bound = task.signature.bind(*args, **kwargs)
        contents = Contents()
        for _, mode, value in task.signature.items(args, bound):
            contents.add(value, mode)
        if contents.futures:
            raise UsageError(
                f"{task.name}(…) was called with a Future: use {task.name}.submit(…), or pass "
                "its result()"
            )
        scope = self._scope()
        with self.executor.lock:
            users = [
                node
                for item, mode in contents.data
                for node in self.scheduler.graph.users(item, mode, scope)
            ]
        if users:
            raise LentDataError(
                f"{task.name}(…) was called on data that {users[0].title} (submitted at "
                f"{users[0].where}) uses: call {task.name}.submit(…), or legato_rt.wait(…) first"
            )

    # -- what happened ----------------------------------------------------------------------

    @property
    def trace(self) -> Trace:
        """One record for each body that ran; needs ``trace=True``."""
        if not self.keeps_trace:
            raise UsageError("Runtime(trace=True) keeps a trace; this runtime does not")
        records = [Record(*entry) for worker in self.executor.workers for entry in worker.log]
        return Trace([slot.device.name for slot in self._slots], records)

    def report(self) -> Report:
        """Time, work per task and device, and energy with its source, up to now."""
        totals: Totals = {}
        for worker in list(self.executor.workers):
            for key, counts in list(worker.totals.items()):
                known = totals.get(key, (0, 0, 0))
                totals[key] = (known[0] + counts[0], known[1] + counts[1], known[2] + counts[2])
            add_up(list(worker.log), totals)
        by_device: dict[tuple[str, str], tuple[int, int, int]] = {}
        for (task, slot), counts in totals.items():
            key2 = task, self._slots[slot].device.name
            known = by_device.get(key2, (0, 0, 0))
            by_device[key2] = tuple(map(sum, zip(known, counts, strict=True)))  # type: ignore[assignment]
        end = self._closed if self._closed is not None else time.perf_counter()
        coarse = self.scheduler.graph.registry.coarse
        return summarise(end - self._opened, self.machine.devices, by_device, coarse)


_HOST_PLAN = Plan(task(name="host access")(lambda granted: None), {"host": ("cpu",)}, False)


class _Deadline:
    """A time limit that several waits share."""

    def __init__(self, timeout: float | None) -> None:
        self._end = None if timeout is None else time.monotonic() + timeout

    def left(self) -> float | None:
        """Seconds that are left, or `None` without a limit."""
        return None if self._end is None else max(self._end - time.monotonic(), 0.0)


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


def _machine(settings: Settings) -> Machine:
    machine = discover().select(settings.devices)
    if settings.workers is not None:
        machine = machine.with_workers("cpu", settings.workers)
    if not machine.devices:
        raise SettingError("there is no device to run on")
    return machine


def _open_slots(machine: Machine) -> list[Slot]:
    slots: list[Slot] = []
    for device in machine.devices:
        session = backends()[device.kind].open(device)
        for number in range(device.workers):
            slots.append(Slot(len(slots), device, session, number))
    return slots
