"""What all executors share: a worker, and how it runs one node's body."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from legato_rt.arguments import ATOM, KINDS, resolve
from legato_rt.backend import Session
from legato_rt.errors import LegatoError, TaskError
from legato_rt.future import Future
from legato_rt.graph import Node
from legato_rt.machine import Device
from legato_rt.ownership import own_value
from legato_rt.scheduler import Scheduler

logger = logging.getLogger(__name__)
clock = time.perf_counter_ns

RecordTuple = tuple[int, str, str, int, int, int, bool]
Totals = dict[tuple[str, int], tuple[int, int, int]]

FOLD_AT = 4096


@dataclass(frozen=True, slots=True)
class Slot:
    """A worker of the scheduler: one of the things a device does at once."""

    index: int
    device: Device
    session: Session
    number: int


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
    for _, task, _, worker, start, stop, ok in records:
        count, failed, spent = totals.get((task, worker), (0, 0, 0))
        totals[task, worker] = (count + 1, failed + (not ok), spent + stop - start)


class Executor(ABC):
    """Runs the nodes that a scheduler starts.

    Attributes
    ----------
    lock : Lock
        Guards the scheduler; held for every call of it.
    workers : list of Worker
        All that ever ran bodies.
    """

    def __init__(self, runtime: Any, scheduler: Scheduler, slots: Sequence[Slot]) -> None:
        self.runtime = runtime
        self.scheduler = scheduler
        self.slots = list(slots)
        self.lock = Lock()
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
        assert slot is not None and node.choice is not None
        variant = node.variant = node.choice.by_device[slot.device.name]
        outer, worker.node = worker.node, node
        worker.depth += 1
        start = clock()
        try:
            args, kwargs = node.args, node.kwargs
            if node.holes:
                args = tuple(map(resolve, args))
                kwargs = {name: resolve(value) for name, value in (kwargs or {}).items()}
            value = slot.session.call(slot.number, variant.function, args, kwargs or {})
            if KINDS.get(type(value)) != ATOM:
                value = own_value(self.runtime, node, value, args)
        except BaseException as error:
            stop = clock()
            failure: LegatoError | None = self._failure(node, error, slot)
        else:
            stop = clock()
            failure = None
        worker.depth -= 1
        worker.node = outer
        worker.log.append(
            (node.seq, node.task.name, variant.name, slot.index, start, stop, failure is None)
        )
        if len(worker.log) >= FOLD_AT and not self.runtime.keeps_trace:
            worker.fold()
        # A body that waited may have come back on another slot.
        slot = worker.slot
        with self.lock:
            if failure is None:
                following = self.scheduler.finish(node, value, slot.index, onward)
            else:
                following = self.scheduler.fail(node, failure, slot.index, onward)
            self.obey()
            completed = self.take_completed()
        self.call_back(completed)
        return following

    def obey(self) -> None:
        """Wake whom the scheduler wants woken; the lock is held."""
        self.scheduler.wakes.clear()

    def take_completed(self) -> Sequence[Future[Any]]:
        """Nodes whose callbacks are due; the lock is held."""
        completed = self.scheduler.completed
        if not completed:
            return ()
        self.scheduler.completed = []
        return completed

    @staticmethod
    def call_back(nodes: Sequence[Future[Any]]) -> None:
        """Call the callbacks of nodes that are over; the lock is not held."""
        for node in nodes:
            callbacks, node.callbacks = node.callbacks, None
            for callback in callbacks or ():
                try:
                    callback(node)
                except Exception:
                    logger.exception("a callback of %r raised", node)

    @staticmethod
    def _failure(node: Node, error: BaseException, slot: Slot) -> TaskError:
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
