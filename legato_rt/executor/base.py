"""What all executors share: a worker, and how it runs one node's body."""

from __future__ import annotations

import contextlib
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple

from legato_rt.arguments import ATOM, KINDS, resolve
from legato_rt.backend import Session
from legato_rt.costs import CostModel
from legato_rt.errors import DeviceError, LegatoError, TaskError
from legato_rt.executor.transfers import Transfers
from legato_rt.future import Callback, Future
from legato_rt.machine import Device
from legato_rt.memory import MemoryNode, Replica
from legato_rt.node import Node
from legato_rt.outcomes import PassedOn
from legato_rt.ownership import own_value
from legato_rt.placement import Plan
from legato_rt.scheduler import Scheduler
from legato_rt.strict import explain_write, shielded
from legato_rt.task import Task, Variant

logger = logging.getLogger(__name__)
clock = time.perf_counter_ns

RecordTuple = tuple[int, Plan, Variant, int, int, int, bool]
Totals = dict[tuple[str, int], tuple[int, int, int]]

FOLD_AT = 4096


@dataclass(frozen=True, slots=True)
class Slot:
    """A worker of the scheduler: one of the things a device does at once.

    Attributes
    ----------
    index : int
        Counted over all devices.
    number : int
        Counted within the device.
    direct : bool
        Whether a variant is called as it is, without `Session.call`.
    has_memory : bool
        Whether variants work on copies in the device's own memory.
    turn : context manager
        Held while a variant runs.
    """

    index: int
    device: Device
    session: Session
    number: int
    name: str
    direct: bool
    has_memory: bool
    turn: contextlib.AbstractContextManager[Any]


class _Call(NamedTuple):
    """A call as a cost model sees it."""

    task: Task[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any] | None


class Refused(DeviceError):
    """A device could not take a task's arguments; nothing of the task has run there."""


class Worker:
    """Whoever runs bodies: a thread with a slot, and the frame in which its tasks submit.

    Attributes
    ----------
    node : Node or None
        The node whose body runs now.
    slot : Slot or None
        `None` while the slot is lent.
    depth : int
        Bodies on this thread's stack.
    log : list
        Records of bodies that ran, in order; folded into `totals` unless a trace is kept.
    totals : dict of (task, worker) to (count, failed, nanoseconds)
    """

    __slots__ = ("depth", "log", "node", "runtime", "slot", "totals")

    def __init__(self, runtime: Any, slot: Slot | None) -> None:
        self.runtime = runtime
        self.slot = slot
        self.node: Node | None = None
        self.depth = 0
        self.log: list[RecordTuple] = []
        self.totals: Totals = {}

    def fold(self) -> None:
        """Add the records up; called by the thread that writes them, or once it is over."""
        add_up(self.log, self.totals)
        self.log = []


def add_up(records: Iterable[RecordTuple], totals: Totals) -> None:
    """Add records to totals by task and worker."""
    for _, plan, _, worker, start, stop, ok in records:
        key = plan.task.name, worker
        count, failed, spent = totals.get(key, (0, 0, 0))
        totals[key] = (count + 1, failed + (not ok), spent + stop - start)


def _transfers(executor: Executor, runtime: Any) -> Transfers | None:
    """What keeps the memories of the devices coherent, if one has a memory of its own."""
    given = runtime.memory_limit_bytes
    memories = {
        slot.name: (
            slot.session.memory,  # type: ignore[attr-defined]
            MemoryNode(slot.name, given or slot.device.memory_bytes, slot.device.kind),
        )
        for slot in executor.slots
        if slot.has_memory
    }
    if not memories:
        return None
    registry = executor.scheduler.graph.registry
    return Transfers(registry, executor.lock, memories, runtime.keeps_trace)


class Executor(ABC):
    """Runs the nodes that a scheduler starts.

    Attributes
    ----------
    lock : Lock
        Guards the scheduler; held for every call of it.
    workers : list of Worker
        All that ever ran bodies.
    timed : bool
        Whether the policy predicts: it is told the time before each call of the scheduler.
    costs : CostModel or None
        What learns from bodies that ran.
    inline : bool
        Whether the caller of the scheduler must call `submitted` for anything to run.
    """

    inline = False

    def __init__(self, runtime: Any, scheduler: Scheduler, slots: Sequence[Slot]) -> None:
        self.runtime = runtime
        self.scheduler = scheduler
        self.slots = list(slots)
        self.strict: bool = runtime.strict
        self.lock = Lock()
        self.transfers = _transfers(self, runtime)
        self.timed = scheduler.timed
        self.costs: CostModel | None = None
        self._plain = not self.strict and self.transfers is None
        self.workers: list[Worker] = []

    @abstractmethod
    def start(self) -> None:
        """Get ready to run."""

    @abstractmethod
    def submitted(self) -> None:
        """Obey the scheduler after calls made from outside a worker; the lock is not held."""

    @abstractmethod
    def wait(self, nodes: Sequence[Future[Any]], timeout: float | None) -> bool:
        """Return once all nodes are over, or false after ``timeout`` seconds."""

    @abstractmethod
    def stop(self) -> None:
        """End all threads; nothing is pending."""

    def run(self, worker: Worker, node: Node, onward: bool) -> Node | None:
        """Run a started node's body and tell the scheduler; return the next started node."""
        slot = worker.slot
        choice = node.choice
        assert slot is not None
        assert choice is not None
        variant = node.variant = choice.by_device[slot.name]
        outer, worker.node = worker.node, node
        worker.depth += 1
        failure: LegatoError | None = None
        args, kwargs = node.args, node.kwargs
        start = clock()
        try:
            if node.holes:
                args = tuple([a.value if type(a) is Node else resolve(a) for a in args])
                kwargs = kwargs and {name: resolve(value) for name, value in kwargs.items()}
            if self._plain and slot.direct and not kwargs:
                value = variant.function(*args)
            else:
                value, start = self._call(slot, node, args, kwargs or {})
            if KINDS.get(type(value)) != ATOM:
                value = own_value(self.runtime, node, value)
        except BaseException as error:
            failure = self._failure(node, error, slot)
            onward = onward and not isinstance(error, KeyboardInterrupt)
        stop = clock()
        worker.depth -= 1
        worker.node = outer
        worker.log.append((node.seq, node.plan, variant, slot.index, start, stop, failure is None))
        if len(worker.log) >= FOLD_AT and not self.runtime.keeps_trace:
            worker.fold()
        # A body that waited may have come back on another slot.
        index = worker.slot.index  # type: ignore[union-attr]
        scheduler = self.scheduler
        with self.lock:
            if self.timed:
                self.tick()
                self._observe(node, variant, slot, args, kwargs, stop - start, failure)
            if failure is None:
                following = scheduler.finish(node, value, index, onward)
            elif isinstance(failure.__cause__, Refused) and scheduler.retreat(node, index):
                following = scheduler.next(index) if onward else None
            else:
                following = scheduler.fail(node, failure, index, onward)
            if scheduler.wakes:
                self.obey()
            completed = self.take_completed() if scheduler.completed else None
        if completed:
            self.call_back(completed)
        return following

    def _call(
        self, slot: Slot, node: Node, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Any, int]:
        """Call a variant with all that a plain call has not; return its value and its start."""
        variant, session = node.variant, slot.session
        assert variant is not None
        if self.strict:
            args, kwargs = shielded(node, args, kwargs)
        transfers = self.transfers
        pinned: Sequence[Replica] = ()
        if transfers is not None and slot.has_memory:
            try:
                args, kwargs, pinned = transfers.enter_device(
                    slot.name, slot.number, node, args, kwargs
                )
            except DeviceError as error:
                raise Refused(str(error)) from error
        elif transfers is not None:
            transfers.enter_host(node, args, kwargs)
        try:
            with slot.turn:
                start = clock()
                return session.call(slot.number, variant.function, args, kwargs), start
        except BaseException as error:
            if self.strict:
                explain_write(error, node, args, kwargs)
            raise
        finally:
            if transfers is not None:
                transfers.leave_device(node, pinned)

    def tick(self) -> None:
        """Tell a policy that predicts what time it is; the lock is held."""
        self.scheduler.policy.now = time.monotonic()

    def _observe(
        self,
        node: Node,
        variant: Variant,
        slot: Slot,
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None,
        spent_ns: int,
        failure: LegatoError | None,
    ) -> None:
        """Let the cost model learn from a body that returned; the lock is held."""
        if failure is None and self.costs is not None:
            point = node.placed.point if node.placed is not None else ""
            call = _Call(node.task, args, kwargs)
            self.costs.observe(call, slot.device, variant, point, 1, spent_ns / 1e9)

    def totals(self) -> Totals:
        """What all workers did so far, by task and worker."""
        totals: Totals = {}
        for worker in list(self.workers):
            for key, (count, failed, spent) in list(worker.totals.items()):
                known = totals.get(key, (0, 0, 0))
                totals[key] = (known[0] + count, known[1] + failed, known[2] + spent)
            add_up(list(worker.log), totals)
        return totals

    def obey(self) -> None:
        """Wake whom the scheduler wants woken; the lock is held."""
        self.scheduler.wakes.clear()

    @contextlib.contextmanager
    def step(self) -> Iterator[Scheduler]:
        """Call the scheduler, from anywhere but a worker, and obey it."""
        with self.lock:
            if self.timed:
                self.tick()
            yield self.scheduler
            self.obey()
            completed = self.take_completed()
        self.call_back(completed)
        self.submitted()

    def take_completed(self) -> Sequence[Future[Any]]:
        """Nodes whose callbacks are due; the lock is held."""
        completed = self.scheduler.completed
        if not completed:
            return ()
        self.scheduler.completed = []
        return completed

    @staticmethod
    def call_back(nodes: Sequence[Future[Any]], more: Sequence[Callback] = ()) -> None:
        """Call the callbacks of nodes that are over, and ``more``; the lock is not held."""
        for node in nodes:
            callbacks, node.callbacks = node.callbacks, None
            for callback in (*(callbacks or ()), *more):
                try:
                    callback(node)
                except Exception:
                    logger.exception("a callback of %r raised", node)

    def _failure(self, node: Node, error: BaseException, slot: Slot) -> LegatoError:
        if isinstance(error, PassedOn):
            return error.failure
        assert node.variant is not None
        failure = TaskError(
            f"{type(error).__name__} in {node.title}, submitted at {node.where} "
            f"(variant {node.variant.name} on {slot.device.name}, attempt 1)",
            task=node.options.name or node.task.name,
            where=node.where,
            variant=node.variant.name,
            device=slot.device.name,
        )
        failure.__cause__ = error
        return failure
