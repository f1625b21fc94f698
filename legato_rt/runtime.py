"""`Runtime`: the scheduler, an executor and the devices tied together, and what users call."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Mapping
from types import FrameType, TracebackType
from typing import Any

from legato_rt import context
from legato_rt.arguments import ATOM, FUTURE, KINDS
from legato_rt.assembly import assemble
from legato_rt.errors import ClosedError
from legato_rt.future import FINISHED, Future, deliver, is_delivered
from legato_rt.lending import Deadline
from legato_rt.node import Node, Scope, Site, refuse_foreign, search
from legato_rt.objective import Objective, make_objective
from legato_rt.placement import Choice, Plan
from legato_rt.policy.base import Policy
from legato_rt.report import Report
from legato_rt.settings import Settings
from legato_rt.task import DEFAULTS, Options, Task
from legato_rt.trace import Trace


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
        Names or kinds of the devices to use; by default all that have hardware of their own and
        that some task has a variant for.
    policy : str or Policy, optional
        Which ready task a worker gets next, by name or as an object of your own; by default
        ``"steal"`` on a CPU alone, and what serves the objective where devices differ.
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
    memory_limit : int or str, optional
        Bytes that each device with a memory of its own may hold, for instance ``"512MiB"``.
    objective : str or Objective, optional
        What policies that predict aim at: ``"time"``, ``"energy"``, ``"balanced"``, ``"edp"``,
        ``"ed2p"``, or an `Objective`.
    power_cap_w : float, optional
        What the machine may draw at any time, in the terms of its power model.
    costs : str, optional
        File of learned costs; ``"auto"`` for this machine's own, ``"off"`` to keep none.
    validate : bool, optional
        Check the scheduler's invariants after every step; slow, for tests.

    Each can also be set as ``LEGATO_RT_<NAME>`` or in ``legato_rt.toml``; arguments win.

    Raises
    ------
    SettingError
        If a value cannot be used.
    """

    node: Node | None = None  # as a frame: what the program itself submits has no parent

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
        memory_limit: int | str | None = None,
        objective: str | Objective | None = None,
        power_cap_w: float | None = None,
        costs: str | None = None,
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
            memory_limit=memory_limit,
            objective=objective if not isinstance(objective, Objective) else None,
            power_cap_w=power_cap_w,
            costs=costs,
        )
        if not isinstance(objective, Objective):
            objective = make_objective(settings.objective)
        given = policy if isinstance(policy, Policy) else None
        self._open(settings, given, objective, validate)
        context.open_runtimes.append(self)

    def _open(
        self, settings: Settings, policy: Policy | None, objective: Objective, validate: bool
    ) -> None:
        self.runtime = self
        self.reproducible = settings.reproducible
        self.strict = settings.strict
        self.keeps_trace = settings.trace
        self.memory_limit_bytes = settings.memory_limit
        self._parts = parts = assemble(self, settings, policy, objective, validate)
        self.machine = parts.machine
        self.scheduler = parts.scheduler
        self.executor = parts.executor
        self.lending = parts.lending
        self._guard = parts.guard
        self._root = Scope(self, None)
        self._plans: dict[Task[..., Any], Plan] = {}
        self._numbers = itertools.count()
        self._state = "open"
        self._tokens: list[Any] = []

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
                deliver(failure, self.moment())
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
            self._parts.close()

    def _drain(self, cancel: bool) -> None:
        if cancel:
            self._state = "closing"
            with self.executor.step() as scheduler:
                scheduler.cancel_all()
        self.lending.scope(self._root, Deadline())
        with self.executor.lock:
            self._state = "closing"
        # What other threads submitted meanwhile was taken, so it runs.
        self.lending.scope(self._root, Deadline())
        if self.executor.transfers is not None:
            self.executor.transfers.bring_all_home()

    # -- submitting -------------------------------------------------------------------------

    def submit(
        self,
        task: Task[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        options: Options,
        caller: FrameType | Site,
        here: Any = None,
    ) -> Future[Any]:
        """Add a node; what `Task.submit` calls, with the frame that it found as ``here``."""
        signature = task.signature
        bound: dict[str, Any] | None = None
        if kwargs or (len(args) != signature.arity and not signature.takes(len(args))):
            args, bound = signature.bind(*args, **kwargs)
        if self._guard is not None:
            args, bound = self._guard.lend(task, args, bound)
        plan = self._plans.get(task)
        if plan is None or plan.source is not task.variants:
            plan = self._plan(task)
        scope = self._root if here is self else self._scope()
        node = Node(scope, next(self._numbers), plan, args, bound, options, caller)
        futures: list[Any] | None = None
        data: list[tuple[Any, int]] | None = None
        for value in args:
            kind = KINDS.get(type(value))
            if kind == FUTURE and not bound:
                if value.parent is not scope and value.parent.runtime is not self:
                    refuse_foreign(node, value)
                if futures is None:
                    futures = [value]
                else:
                    futures.append(value)
            elif kind != ATOM:
                futures, data = search(node)
                break
        else:
            if futures is not None:
                node.holes = True
            elif bound:
                futures, data = search(node)
        choice = plan.fixed
        if choice is None and not node.holes:
            choice = plan.choice(args, bound)
        node.choice = choice
        executor, scheduler = self.executor, self.scheduler
        completed = None
        with executor.lock:
            if self._state != "open":
                self._refuse(node)
            if executor.timed:
                executor.tick()
            scheduler.submit(node, futures, data)
            if scheduler.wakes:
                executor.obey()
            if scheduler.completed:
                completed = executor.take_completed()
        if completed:
            executor.call_back(completed)
        if executor.inline:
            executor.submitted()
        if scope.eager:
            self.wait_for(node, None)
        return node

    def submit_prepared(
        self, plan: Plan, args: tuple[Any, ...], data: list[tuple[Any, int]], caller: FrameType
    ) -> Node:
        """Add a node of the runtime's own, whose arguments are not looked into."""
        scope, number = self._scope(), next(self._numbers)
        node = Node(scope, number, plan, args, None, DEFAULTS, caller)
        node.choice = self._anywhere(plan)
        with self.executor.step() as scheduler:
            if self._state != "open":
                self._refuse(node)
            scheduler.submit(node, None, data)
        return node

    def prepare(self, plan: Plan, args: tuple[Any, ...], scope: Scope) -> Node:
        """Make a part of the task that owns a scope, to be submitted with its edges given."""
        assert scope.node is not None
        number, site = next(self._numbers), scope.node.site
        node = Node(scope, number, plan, args, None, DEFAULTS, site)
        node.choice = self._anywhere(plan)
        return node

    def _anywhere(self, plan: Plan) -> Choice:
        """For a task of the runtime's own: the CPU, or whatever there is without one."""
        names = [name for name, kinds in self._parts.accepts.items() if "cpu" in kinds]
        return Choice(dict.fromkeys(names or self._parts.accepts, plan.task.variants[0]))

    def plan_of(self, task: Task[..., Any]) -> Plan:
        """What this runtime knows about a task."""
        plan = self._plans.get(task)
        return plan if plan is not None and plan.source is task.variants else self._plan(task)

    def _plan(self, task: Task[..., Any]) -> Plan:
        plan = Plan(task, self._parts.accepts, self.reproducible, self._parts.residence)
        self._plans[task] = plan
        return plan

    def _refuse(self, node: Node) -> None:
        """A closing runtime takes nothing new but the children of bodies that still run."""
        if self._state == "closed" or node.parent.node is None or self.scheduler.closing:
            raise ClosedError(f"{node.title} was submitted to a runtime that is {self._state}")

    def _scope(self) -> Scope:
        """The scope of whoever calls: the body that runs here, or the program."""
        here = context.frame.get()
        node: Node | None = here.node if here is not None and here.runtime is self else None
        return self._root if node is None or node.state >= FINISHED else self.scope_of(node)

    def scope_of(self, node: Node) -> Scope:
        """The scope of what a running node submits."""
        with self.executor.lock:
            if node.scope is None:
                node.scope = Scope(self, node)
                node.scope.eager = node.parent.whole
            found: Scope = node.scope
        return found

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
        self.lending.wait(items, self._scope(), Deadline(timeout))

    def host(self, item: Any, mode: str = "in") -> contextlib.AbstractContextManager[Any]:
        """Lend data back to the program for the length of a ``with`` block.

        Parameters
        ----------
        item : object
            An array, or another tracked object; the block gets it as it is.
        mode : {"in", "out", "inout"}
            What the block does with it; tasks submitted inside the block wait accordingly.
        """
        return self.lending.host(item, mode, self._scope(), next(self._numbers))

    def check_plain_call(
        self, task: Task[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        """Refuse a plain call of a task where it would break the order; what `Task` calls.

        Raises
        ------
        UsageError, LentDataError
        """
        self.lending.check_plain_call(task, args, kwargs, self._scope())

    def moment(self) -> int:
        """Now, on the count of submits."""
        return next(self._numbers)

    def wait_for(self, future: Future[Any], timeout: float | None) -> None:
        """Return when a future is done; what `Future.result` calls."""
        self.lending.futures([future], Deadline(timeout), repr(future))

    def settle(self, future: Future[Any], timeout: float | None) -> Any:
        """The value of a finished future, once no task writes it; what `Future.result` calls."""
        return self.lending.settle(future, timeout)

    def wait_for_children(self, node: Node) -> None:
        """Return when all children of a running node are over."""
        assert node.scope is not None
        self.lending.scope(node.scope, Deadline())

    # -- futures ----------------------------------------------------------------------------

    def cancel(self, node: Node) -> bool:
        """Cancel a node that has not started; what `Future.cancel` calls."""
        with self.executor.step() as scheduler:
            return scheduler.cancel(node, self.moment())

    def add_callback(self, node: Node, callback: Callable[[Future[Any]], object]) -> None:
        """What `Future.add_done_callback` calls."""
        with self.executor.lock:
            if node.state < FINISHED:
                node.callbacks = [*(node.callbacks or ()), callback]
                return
        self.executor.call_back([node], [callback])

    # -- what happened ----------------------------------------------------------------------

    @property
    def trace(self) -> Trace:
        """One record for each body that ran; needs ``trace=True``."""
        return self._parts.ledger.trace()

    def report(self) -> Report:
        """Time, work per task and device, and energy with its source, up to now."""
        return self._parts.ledger.report()
