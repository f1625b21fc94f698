"""The contract of executors on all that ship, and that it finds what is wrong with others."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from legato_rt.errors import LegatoError, UsageError
from legato_rt.executor import EXECUTORS
from legato_rt.executor.base import Executor, Slot
from legato_rt.executor.serial import SerialExecutor
from legato_rt.executor.threads import ThreadsExecutor
from legato_rt.future import Callback, Future
from legato_rt.node import Node
from legato_rt.testing import EXECUTOR_CHECKS, check_executor
from legato_rt.testing.executors import Kind


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("check", EXECUTOR_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", EXECUTORS)
def test_it_fulfils_the_contract(
    name: str, check: Callable[[Kind, int], None], workers: int
) -> None:
    check(name, workers)


@pytest.mark.parametrize("executor", [SerialExecutor, ThreadsExecutor])
def test_a_class_need_not_be_registered(executor: type[Executor]) -> None:
    before = dict(EXECUTORS)
    check_executor(executor)
    assert before == EXECUTORS


class CallsTwice(ThreadsExecutor):
    @staticmethod
    def call_back(nodes: Sequence[Future[Any]], more: Sequence[Callback] = ()) -> None:
        for node in nodes:
            node.callbacks = [*(node.callbacks or ()), *(node.callbacks or ())]
        Executor.call_back(nodes, more)


class HidesTheCause(SerialExecutor):
    @staticmethod
    def _failure(node: Node, error: BaseException, slot: Slot) -> LegatoError:
        return UsageError(f"{node.title} failed")


class ForgetsWhatRan(ThreadsExecutor):
    def run(self, worker: Any, node: Node, onward: bool) -> Node | None:
        following = super().run(worker, node, onward)
        worker.log.clear()
        return following


class LeavesAThread(SerialExecutor):
    release = threading.Event()
    left: threading.Thread

    def stop(self) -> None:
        super().stop()
        LeavesAThread.left = threading.Thread(target=self.release.wait, args=(60,))
        LeavesAThread.left.start()


class ChangesValues(SerialExecutor):
    def run(self, worker: Any, node: Node, onward: bool) -> Node | None:
        following = super().run(worker, node, onward)
        if isinstance(node.value, int):
            node.value += 1
        return following


@pytest.mark.parametrize(
    ("executor", "told"),
    [
        (CallsTwice, "callbacks of three tasks were called"),
        (HidesTheCause, "a body that raises gives"),
        (ForgetsWhatRan, "the report counts"),
        (LeavesAThread, "threads are left behind"),
        (ChangesValues, "a sum is"),
    ],
)
def test_what_is_wrong_is_found(executor: type[Executor], told: str) -> None:
    try:
        with pytest.raises(AssertionError, match=told):
            check_executor(executor)
    finally:
        if executor is LeavesAThread:
            LeavesAThread.release.set()
            LeavesAThread.left.join()
