"""``serial``: every submit runs on the spot, in the caller's thread.

The reference that all other executors are held against, and the one to debug with: a breakpoint in
a body has the line of its submit on the stack.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from legato_rt import context
from legato_rt.errors import LegatoError
from legato_rt.executor.base import Executor, Slot, Worker
from legato_rt.future import FINISHED, Future
from legato_rt.node import Node


class SerialExecutor(Executor):
    """Runs what is ready, until nothing is, inside the call that made it ready."""

    inline = True

    def start(self) -> None:
        """Make the one worker that stands for all slots in turn."""
        self._turn = threading.RLock()
        self._worker = Worker(self.runtime, None)
        self._interrupt: KeyboardInterrupt | None = None
        self.workers.append(self._worker)

    def submitted(self) -> None:
        """Run all that is ready; a body's own submits run inside it."""
        with self._turn:
            ran = True
            while ran:
                ran = False
                for slot in self.slots:
                    ran = self._run_slot(slot) or ran

    def run(self, worker: Worker, node: Node, onward: bool) -> Node | None:
        """Run a body; an interrupt of it is one of the program, whose thread this is."""
        following = super().run(worker, node, onward)
        if self._interrupt is not None:
            interrupt, self._interrupt = self._interrupt, None
            raise interrupt
        return following

    def _failure(self, node: Node, error: BaseException, slot: Slot) -> LegatoError:
        if isinstance(error, KeyboardInterrupt):
            self._interrupt = error
        return super()._failure(node, error, slot)

    def _run_slot(self, slot: Slot) -> bool:
        """Run what one slot finds to do; false if that is nothing."""
        with self.lock:
            if self.timed:
                self.tick()
            node = self.scheduler.next(slot.index)
            self.obey()
            completed = self.take_completed()
        self.call_back(completed)
        if node is None:
            return False
        worker = self._worker
        outer, worker.slot = worker.slot, slot
        token = context.frame.set(worker)
        try:
            while node is not None:
                node = self.run(worker, node, onward=True)
        finally:
            context.frame.reset(token)
            worker.slot = outer
        return True

    def wait(self, nodes: Sequence[Future[Any]], timeout: float | None) -> bool:
        """All that could run has run: what is still pending waits for a body on the stack."""
        with self._turn:
            return all(node.state >= FINISHED for node in nodes)

    def stop(self) -> None:
        """There is nothing to end."""
