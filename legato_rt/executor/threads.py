"""``threads``: one thread for each worker of each device.

A body that waits for a future lends its slot.  If the awaited node is ready, it runs inside the
waiting body, up to `MAX_DEPTH` bodies on one stack; else, or beyond that, a spare thread takes the
slot, and the body asks for one again when its wait is over.  So there are never more bodies at work
than slots, and nesting of any depth goes on with a single worker.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Sequence
from typing import Any

from legato_rt import context
from legato_rt.executor.base import Executor, Slot, Worker
from legato_rt.future import FINISHED, Future
from legato_rt.node import Node
from legato_rt.scheduler import Scheduler

MAX_DEPTH = 16

# A signal that comes just before a thread falls asleep is seen when it wakes: the program's own
# thread looks up this often, so that no Ctrl-C is lost.
LOOK_UP_S = 0.5


class Gate:
    """Where one thread sleeps until another opens it; opening may come first, or twice.

    ``open`` is called with the executor's lock held, and whoever wakes looks again at what he
    waited for: so two openings may be one.
    """

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def open(self) -> None:
        """Let the sleeper go on."""
        if self._lock.locked():
            self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        """Sleep until opened, or for ``timeout`` seconds at most."""
        return self._lock.acquire(timeout=-1 if timeout is None else max(timeout, 0))


class ThreadWorker(Worker):
    """A thread; without a slot it is a spare, or its body waits.

    Attributes
    ----------
    device : str
        Name of the device that its slot belongs, or belonged, to.
    """

    __slots__ = ("device", "gate", "thread")

    def __init__(self, executor: ThreadsExecutor, slot: Slot) -> None:
        super().__init__(executor.runtime, slot)
        self.device = slot.device.name
        self.gate = Gate()
        self.thread = threading.Thread(
            target=contextvars.Context().run,
            args=(executor.work, self),
            name=f"legato-{len(executor.workers)}",
            daemon=True,
        )


class ThreadsExecutor(Executor):
    """Runs bodies in threads of this process."""

    workers: list[ThreadWorker]  # type: ignore[assignment]

    def __init__(self, runtime: Any, scheduler: Scheduler, slots: Sequence[Slot]) -> None:
        super().__init__(runtime, scheduler, slots)
        self._holders: list[ThreadWorker] = []
        self._spares: list[ThreadWorker] = []
        self._returning: list[ThreadWorker] = []
        self._stopping = False

    def start(self) -> None:
        """Start a thread for each slot; each looks for work once and parks."""
        with self.lock:
            for slot in self.slots:
                self._holders.append(self._spawn(slot))

    def submitted(self) -> None:
        """Nothing: `obey` opened the gates already."""

    def obey(self) -> None:
        """Open the gates of the workers that the scheduler wants woken; the lock is held."""
        wakes = self.scheduler.wakes
        while wakes:
            self._holders[wakes.pop()].gate.open()

    def stop(self) -> None:
        """End all threads and wait for them."""
        with self.lock:
            self._stopping = True
            for worker in self.workers:
                worker.gate.open()
        for worker in self.workers:
            if worker.thread is not threading.current_thread():
                worker.thread.join()

    def work(self, worker: ThreadWorker) -> None:
        """A thread's life: run what its slot gets, sleep when that is nothing."""
        context.frame.set(worker)
        node: Node | None = None
        while True:
            if node is None:
                with self.lock:
                    if self._stopping:
                        return
                    if self._returning and worker.slot is not None:
                        self._give_way(worker)
                    if self.timed:
                        self.tick()
                    if worker.slot is not None:
                        node = self.scheduler.next(worker.slot.index)
                        self.obey()
                    completed = self.take_completed()
                self.call_back(completed)
                if node is None:
                    worker.gate.wait()
                    continue
            node = self.run(worker, node, onward=not self._returning)

    def wait(self, nodes: Sequence[Future[Any]], timeout: float | None) -> bool:
        """Return once all nodes are over; a worker's body runs them or lends its slot meanwhile."""
        frame = context.frame.get()
        worker = frame if isinstance(frame, ThreadWorker) and self._is_mine(frame) else None
        deadline = None if timeout is None else time.monotonic() + timeout
        for node in nodes:
            while node.state < FINISHED:
                if worker is not None and self._run_inside(worker, node):
                    continue
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return False
                self._sleep(node, worker, left)
        return True

    def _is_mine(self, worker: ThreadWorker) -> bool:
        return worker.runtime is self.runtime and worker.thread is threading.current_thread()

    def _spawn(self, slot: Slot) -> ThreadWorker:
        worker = ThreadWorker(self, slot)
        self.workers.append(worker)
        worker.thread.start()
        return worker

    # -- waiting inside a body --------------------------------------------------------------

    def _run_inside(self, worker: ThreadWorker, node: Future[Any]) -> bool:
        """Run a ready node on top of the body that waits for it; false if it cannot be."""
        if worker.depth >= MAX_DEPTH or worker.slot is None or not isinstance(node, Node):
            return False
        with self.lock:
            if self.timed:
                self.tick()
            if not self.scheduler.take(node, worker.slot.index):
                return False
        self.run(worker, node, onward=False)
        return True

    def _sleep(self, node: Future[Any], worker: ThreadWorker | None, timeout: float | None) -> None:
        gate = Gate()
        with self.lock:
            if node.state >= FINISHED:
                return
            if node.callbacks is None:
                node.callbacks = []
            node.callbacks.append(lambda _: self._open(gate))
            if worker is not None:
                self._lend(worker)
        if worker is not None:
            gate.wait(timeout)
            self._regain(worker)
        elif timeout is not None:
            gate.wait(timeout)
        else:
            while not gate.wait(LOOK_UP_S):
                pass

    def _open(self, gate: Gate) -> None:
        with self.lock:
            gate.open()

    def _lend(self, worker: ThreadWorker) -> None:
        """Give the slot to a body that wants to go on, or to a spare thread; the lock is held."""
        slot = worker.slot
        assert slot is not None
        worker.slot = None
        heir = self._first_returning(slot)
        if heir is None and self._spares:
            heir = self._spares.pop()
        if heir is None:
            self._holders[slot.index] = self._spawn(slot)
        else:
            self._hold(heir, slot)
            heir.gate.open()

    def _regain(self, worker: ThreadWorker) -> None:
        """Take a parked slot of the same device, or wait until a worker gives way."""
        with self.lock:
            for slot in self.slots:
                if slot.device.name == worker.device and self.scheduler.parking.is_parked(
                    slot.index
                ):
                    self.scheduler.occupy(slot.index)
                    self.obey()
                    self._retire(self._holders[slot.index])
                    self._hold(worker, slot)
                    return
            self._returning.append(worker)
        while worker.slot is None:
            worker.gate.wait()

    def _give_way(self, worker: ThreadWorker) -> None:
        """Hand the slot to a body that wants to go on; the lock is held."""
        slot = worker.slot
        assert slot is not None
        heir = self._first_returning(slot)
        if heir is not None:
            self.scheduler.occupy(slot.index)
            self.obey()
            self._retire(worker)
            self._hold(heir, slot)
            heir.gate.open()

    def _first_returning(self, slot: Slot) -> ThreadWorker | None:
        for worker in self._returning:
            if worker.device == slot.device.name:
                self._returning.remove(worker)
                return worker
        return None

    def _hold(self, worker: ThreadWorker, slot: Slot) -> None:
        worker.slot = slot
        worker.device = slot.device.name
        self._holders[slot.index] = worker

    def _retire(self, worker: ThreadWorker) -> None:
        worker.slot = None
        self._spares.append(worker)
