"""Hard cases of waiting, nesting and order: each ends as said, on few workers, without hanging."""

import threading
from typing import Any

import numpy as np
import pytest

import legato_rt as lrt
from legato_rt import In, InOut, Out
from legato_rt.policy import POLICIES

HANG_S = 30.0

every_policy = pytest.mark.parametrize("policy", POLICIES)
usual_policy = pytest.mark.parametrize("policy", ["fifo", "steal"])


@lrt.task
def increment(x: InOut[Any]) -> None:
    x += 1


@lrt.task
def plus_one(value: int) -> int:
    return value + 1


@lrt.task
def waits_for_child(value: int) -> int:
    return plus_one.submit(value).result() + 1


@lrt.task
def fib(n: int) -> int:
    if n < 2:
        return n
    first, second = fib.submit(n - 1), fib.submit(n - 2)
    return first.result() + second.result()


@lrt.task
def descend(depth: int) -> int:
    return 0 if depth == 0 else descend.submit(depth - 1).result() + 1


@lrt.task
def family(x: InOut[Any], children: int) -> None:
    for _ in range(children):
        increment.submit(x)


@lrt.task
def sum_of_children(first: int, children: int) -> int:
    futures = [plus_one.submit(first + i) for i in range(children)]
    return sum(future.result() for future in futures)


class Gate:
    """Holds all workers of a runtime until it is opened."""

    def __init__(self, workers: int) -> None:
        self._opened = threading.Event()
        self._held = threading.Semaphore(0)
        for _ in range(workers):
            self._hold_one()

    def _hold_one(self) -> None:
        hold.submit(self._reach)
        assert self._held.acquire(timeout=HANG_S)

    def _reach(self) -> None:
        self._held.release()
        assert self._opened.wait(HANG_S)

    def open(self) -> None:
        self._opened.set()


@lrt.task
def hold(reach: Any) -> None:
    reach()


@every_policy
@pytest.mark.parametrize("executor", ["serial", "threads"])
def test_one_worker_whose_task_waits_on_its_own_child(policy: str, executor: str) -> None:
    with lrt.Runtime(workers=1, policy=policy, executor=executor):
        assert waits_for_child.submit(1).result() == 3


@every_policy
def test_many_parents_that_wait_for_their_children(policy: str) -> None:
    with lrt.Runtime(workers=2, policy=policy):
        parents = [sum_of_children.submit(10 * p, 10) for p in range(500)]
        total = sum(parent.result() for parent in parents)
    assert total == sum(range(1, 5001))


@usual_policy
def test_many_parents_whose_children_write_what_they_lend(policy: str) -> None:
    arrays = np.zeros((500, 1))
    with lrt.Runtime(workers=2, policy=policy):
        for row in arrays:
            family.submit(row, 10)
    assert (arrays == 10).all()


@usual_policy
def test_fib_by_tasks_on_one_worker(policy: str) -> None:
    with lrt.Runtime(workers=1, policy=policy):
        assert fib.submit(20).result() == 6765


def test_fib_by_tasks_in_the_callers_thread() -> None:
    with lrt.Runtime(executor="serial"):
        assert fib.submit(12).result() == 144


@usual_policy
def test_nesting_2000_deep_on_one_worker(policy: str) -> None:
    with lrt.Runtime(workers=1, policy=policy):
        assert descend.submit(2000).result() == 2000


@usual_policy
def test_priorities_start_highest_first_on_two_workers(policy: str) -> None:
    started: list[int] = []
    both = threading.Barrier(2)

    @lrt.task
    def note(priority: int) -> None:
        started.append(priority)
        both.wait(HANG_S)  # so that both workers go on at once, to the next two

    with lrt.Runtime(workers=2, policy=policy):
        gate = Gate(2)
        for priority in range(1, 21):
            note.options(priority=priority).submit(priority)
        gate.open()
    pairs = [set(started[i : i + 2]) for i in range(0, 20, 2)]
    assert pairs == [{high, high - 1} for high in range(20, 0, -2)]


@every_policy
def test_priorities_start_highest_first_on_one_worker(policy: str) -> None:
    started: list[int] = []
    with lrt.Runtime(workers=1, policy=policy):
        gate = Gate(1)
        for priority in (3, 1, 5, 2, 4):
            hold.options(priority=priority).submit(lambda p=priority: started.append(p))
        gate.open()
    if policy in ("fifo", "steal"):
        assert started == [5, 4, 3, 2, 1]
    assert sorted(started) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("nested", [False, True])
def test_f_of_g_of_f(nested: bool) -> None:
    @lrt.task
    def double(value: Any) -> Any:
        return value[0] * 2 if nested else value * 2

    def wrapped(value: Any) -> Any:
        return [value] if nested else value

    with lrt.Runtime(workers=2):
        inner = double.submit(wrapped(np.arange(3)))
        middle = plus_one.submit(inner)
        assert double.submit(wrapped(middle)).result().tolist() == [2, 6, 10]


@usual_policy
def test_four_threads_submit_10000_tasks_each_on_one_array(policy: str) -> None:
    x = np.zeros(1)

    def submit_all() -> None:
        for _ in range(10_000):
            increment.submit(x)

    with lrt.Runtime(workers=2, policy=policy):
        threads = [threading.Thread(target=submit_all) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert x[0] == 40_000


def test_four_threads_submit_in_turn_in_their_own_threads() -> None:
    x = np.zeros(1)
    with lrt.Runtime(executor="serial"):
        threads = [
            threading.Thread(target=lambda: [increment.submit(x) for _ in range(500)])
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert x[0] == 2_000


@every_policy
@pytest.mark.parametrize("executor", ["serial", "threads"])
def test_a_child_writes_its_parents_array(policy: str, executor: str) -> None:
    x = np.zeros(2)
    seen: list[float] = []

    @lrt.task
    def parent(x: InOut[Any]) -> None:
        x += 1
        increment.submit(x)
        lrt.wait(x)
        seen.append(float(x[0]))
        increment.submit(x[1:])

    @lrt.task
    def read(x: In[Any]) -> list[float]:
        return [float(value) for value in x]

    with lrt.Runtime(workers=1, policy=policy, executor=executor):
        parent.submit(x)
        assert read.submit(x).result() == [2.0, 3.0]
    assert seen == [2.0]


@usual_policy
@pytest.mark.parametrize("workers", [1, 2])
def test_a_task_waits_on_a_future_of_its_descendants_sibling(policy: str, workers: int) -> None:
    left: dict[str, Any] = {}

    @lrt.task
    def waits_for(name: str) -> int:
        return int(left[name].result()) + 1

    @lrt.task
    def child() -> None:
        left["late"] = plus_one.options(priority=-1).submit(1)
        left["sibling"] = waits_for.submit("late")

    @lrt.task
    def root() -> int:
        child.submit().result()
        return int(left["late"].result()) * 10 + int(left["sibling"].result())

    with lrt.Runtime(workers=workers, policy=policy):
        assert root.submit().result() == 23


@usual_policy
def test_a_body_that_waits_for_itself_is_told_so(policy: str) -> None:
    here: dict[str, Any] = {}
    known = threading.Event()

    @lrt.task
    def narcissus() -> None:
        assert known.wait(HANG_S)
        with pytest.raises(TimeoutError):
            here["self"].result(timeout=0.01)

    with lrt.Runtime(workers=1, policy=policy):
        here["self"] = narcissus.submit()
        known.set()


@usual_policy
def test_a_task_raises_after_its_inputs_last_reference_went(policy: str) -> None:
    go = threading.Event()

    @lrt.task
    def boom(x: In[Any]) -> None:
        assert go.wait(HANG_S)
        raise ValueError(float(x.sum()))

    with lrt.Runtime(workers=1, policy=policy):
        x = np.ones(1000)
        future = boom.submit(x)
        after = increment.submit(x)
        del x
        go.set()
        error = future.exception()
        assert isinstance(error, lrt.TaskError)
        assert repr(error.__cause__) == "ValueError(1000.0)"
        assert after.exception() is None, "a writer after a reader does not need its value"


def test_writes_of_all_kinds_through_overlapping_views_stay_in_order() -> None:
    x = np.zeros(8)

    @lrt.task
    def fill(x: Out[Any], value: float) -> None:
        x[...] = value

    @lrt.task
    def copy(source: In[Any], target: Out[Any]) -> None:
        target[...] = source

    with lrt.Runtime(workers=2):
        fill.submit(x, 1)
        fill.submit(x[::2], 2)
        copy.submit(x[::-1], x)
        increment.submit(x[2:4])
    assert x.tolist() == [1, 2, 2, 3, 1, 2, 1, 2]
