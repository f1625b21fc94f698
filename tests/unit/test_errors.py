"""What programs are told when something goes wrong, and when."""

import linecache
import re
import threading
import traceback
from contextvars import copy_context
from typing import Any

import numpy as np
import pytest

import legato_rt as lrt
from legato_rt import In, InOut, Out

HANG_S = 30.0

everywhere = pytest.mark.parametrize("executor", ["serial", "threads"])


@lrt.task
def boom(message: str = "as asked") -> int:
    raise ValueError(message)


@lrt.task
def spoil(x: InOut[Any], message: str = "as asked") -> None:
    raise ValueError(message)


@lrt.task
def add(first: Any, second: Any) -> Any:
    return first + second


@lrt.task
def increment(x: InOut[Any]) -> None:
    x += 1


@lrt.task
def total(x: In[Any]) -> float:
    return float(x.sum())


def this_line() -> int:
    """Number of the line that calls."""
    return traceback.extract_stack(limit=2)[0].lineno or 0


def failure(future: lrt.Future[Any]) -> lrt.TaskError:
    error = future.exception()
    assert isinstance(error, lrt.TaskError)
    return error


# -- one task ---------------------------------------------------------------------------------


@everywhere
def test_the_users_line_comes_first_and_then_that_of_submit(executor: str) -> None:
    with lrt.Runtime(executor=executor):
        line, future = this_line(), boom.submit()
        error = failure(future)
    shown = "".join(traceback.format_exception(error))
    user = shown.index("raise ValueError(message)")
    assert user < shown.index("ValueError: as asked") < shown.index("direct cause")
    assert shown.index("direct cause") < shown.index(f"submitted at {__file__}:{line}")


@everywhere
def test_a_task_error_says_what_ran_where(executor: str) -> None:
    with lrt.Runtime(executor=executor):
        line, future = this_line(), boom.submit("why")
        error = failure(future)
        named = failure(boom.options(name="step 7").submit())
    assert (error.task, error.variant, error.device, error.attempt) == ("boom", "boom", "cpu", 1)
    assert error.where == f"{__file__}:{line}"
    assert repr(error.__cause__) == "ValueError('why')"
    assert named.task == "step 7"
    assert "ValueError in step 7#" in str(named)


@everywhere
def test_every_way_to_submit_names_its_own_line(executor: str) -> None:
    class Owner:
        @lrt.task
        def method(self) -> None:
            raise ValueError

    bound = boom.options(priority=1)
    with lrt.Runtime(executor=executor):
        for text, future in {
            "boom.submit(),": boom.submit(),
            "bound.submit()": bound.submit(),
            "Owner().method.submit()": Owner().method.submit(),
            "boom.map": boom.map("a")[0],
            "bound.map": bound.map("a")[0],
        }.items():
            file, _, line = failure(future).where.rpartition(":")
            assert file == __file__
            assert text in linecache.getline(file, int(line))


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit, StopIteration])
def test_whatever_a_body_raises_is_a_task_error_on_threads(kind: type[BaseException]) -> None:
    @lrt.task
    def leave() -> None:
        raise kind

    with lrt.Runtime(workers=1):
        assert isinstance(failure(leave.submit()).__cause__, kind)
        assert add.submit(1, 2).result() == 3


# -- what depends on a failure ------------------------------------------------------------------


@everywhere
def test_a_child_of_two_failures_fails_once_and_names_both(executor: str) -> None:
    seen: list[Any] = []
    meet = threading.Barrier(1 if executor == "serial" else 2)

    @lrt.task
    def at_once(name: str) -> int:
        meet.wait(HANG_S)
        raise ValueError(name)

    with lrt.Runtime(workers=2, executor=executor):
        parents = [at_once.submit("left"), at_once.submit("right")]
        child = add.submit(*parents)
        child.add_done_callback(seen.append)
        error = child.exception()
    assert isinstance(error, lrt.DependencyError)
    assert seen == [child]
    assert {str(root.__cause__) for root in error.roots} == {"left", "right"}
    for parent in parents:
        assert parent.title in str(error)  # type: ignore[attr-defined]
        assert parent.exception() in error.roots


@everywhere
def test_a_failure_names_the_first_failed_ancestor(executor: str) -> None:
    with lrt.Runtime(executor=executor):
        first = boom.submit()
        last = add.submit(add.submit(first, 1), add.submit(first, 2))
        error = last.exception()
    assert isinstance(error, lrt.DependencyError)
    assert error.roots == (first.exception(),)
    assert "first failed: ValueError in boom#0" in str(error)
    assert "as asked" in "".join(traceback.format_exception(error))


@everywhere
def test_a_graph_fails_and_the_next_submit_runs(executor: str) -> None:
    x = np.zeros(1)
    with lrt.Runtime(executor=executor):
        lost = [spoil.submit(x), increment.submit(x), total.submit(x)]
        with pytest.raises(lrt.DependencyError, match="spoil#0"):
            lrt.wait(x)
        assert [type(f.exception()) for f in lost[1:]] == [lrt.DependencyError] * 2
        increment.submit(x)
        assert add.submit(1, 2).result() == 3
        assert total.submit(x).result() == 1


@everywhere
def test_what_is_overwritten_as_a_whole_is_sound_again(executor: str) -> None:
    @lrt.task
    def fill(x: Out[Any]) -> None:
        x[...] = 5

    x = np.zeros(2)
    with lrt.Runtime(executor=executor):
        failed = spoil.submit(x)
        fill.submit(x)
        assert total.submit(x).result() == 10
        assert failed.exception() is not None


@everywhere
def test_a_failed_child_fails_a_parent_that_did_not_ask(executor: str) -> None:
    @lrt.task
    def parent(count: int) -> None:
        for n in range(count):
            boom.submit(f"child {n}")

    with lrt.Runtime(executor=executor):
        one, two = failure(parent.submit(1)), failure(parent.submit(2))
    assert isinstance(one.__cause__, lrt.TaskError)
    assert isinstance(two.__cause__, ExceptionGroup)
    assert len(two.__cause__.exceptions) == 2
    assert "did not ask for their results" in str(one)


# -- the end of the with block ------------------------------------------------------------------


@everywhere
def test_leaving_raises_the_roots_that_nobody_saw(executor: str) -> None:
    def program() -> None:
        with lrt.Runtime(executor=executor):
            assert boom.submit("seen").exception() is not None
            through_child = boom.submit("seen through its child")
            with pytest.raises(lrt.DependencyError):
                add.submit(through_child, 1).result()
            add.submit(boom.submit("first"), 1)
            boom.submit("second")

    with pytest.raises(ExceptionGroup, match="2 tasks failed") as caught:
        program()
    causes = [str(error.__cause__) for error in caught.value.exceptions]
    assert sorted(causes) == ["first", "second"]


@everywhere
def test_leaving_is_quiet_when_all_was_seen(executor: str) -> None:
    with lrt.Runtime(executor=executor):
        assert add.submit(boom.submit(), 1).exception() is not None


@everywhere
def test_an_exception_of_the_block_itself_wins(executor: str) -> None:
    with pytest.raises(KeyError), lrt.Runtime(executor=executor):  # noqa: PT012
        boom.submit()
        raise KeyError("mine")


def test_an_exception_of_the_block_cancels_what_has_not_started() -> None:
    running, go = threading.Event(), threading.Event()

    @lrt.task
    def held() -> None:
        running.set()
        assert go.wait(HANG_S)

    x = np.zeros(1)
    with pytest.raises(KeyError), lrt.Runtime(workers=1):  # noqa: PT012
        first = held.submit()
        assert running.wait(HANG_S)
        second, third = increment.submit(x), increment.submit(x)
        second.add_done_callback(lambda _: go.set())
        raise KeyError("mine")
    assert first.exception() is None
    assert second.cancelled()
    assert third.done()
    assert x[0] == 0


# -- misuse ---------------------------------------------------------------------------------------


def test_submit_without_a_runtime_says_so() -> None:
    for submit in (boom.submit, boom.options(priority=1).submit, lambda: boom.map("a")):
        with pytest.raises(lrt.NoRuntimeError, match=r"with legato_rt.Runtime\(\)"):
            submit()


def test_a_thread_without_context_is_told_when_several_runtimes_are_open() -> None:
    said: list[str] = []

    def submit() -> None:
        with pytest.raises(lrt.NoRuntimeError) as caught:
            boom.submit()
        said.append(str(caught.value))

    with lrt.Runtime(workers=1), lrt.Runtime(workers=1):
        thread = threading.Thread(target=submit)
        thread.start()
        thread.join()
    assert "2 runtimes are open" in said[0]
    assert "copy_context" in said[0]


@everywhere
def test_a_closed_runtime_takes_nothing(executor: str) -> None:
    runtime = lrt.Runtime(executor=executor, workers=1)
    with runtime:
        context = copy_context()
    with pytest.raises(
        lrt.ClosedError, match=r"boom#\d+ was submitted to a runtime that is closed"
    ):
        context.run(boom.submit)
    with pytest.raises(lrt.ClosedError, match="make a new one"), runtime:
        pass
    runtime.close()


@everywhere
def test_a_plain_call_with_a_future_names_submit(executor: str) -> None:
    with lrt.Runtime(executor=executor):
        future = add.submit(1, 2)
        for arguments in ((future, 1), ([future], [1]), ({"a": (future,)}, 1)):
            with pytest.raises(lrt.UsageError, match=re.escape("add.submit(…)")):
                add(*arguments)
        with pytest.raises(lrt.UsageError, match=re.escape("result()")):
            add(1, second=future)
        assert add(1, 2) == 3


def test_a_plain_call_on_lent_data_names_submit_and_wait() -> None:
    go = threading.Event()
    x = np.zeros(4)

    @lrt.task
    def held(x: InOut[Any]) -> None:
        assert go.wait(HANG_S)

    with lrt.Runtime(workers=1):
        held.submit(x[:2])
        for call in (lambda: increment(x), lambda: total(x), lambda: add([x[1:]], 1)):
            with pytest.raises(lrt.LentDataError, match=r"held#0.*\.submit\(…\).*wait"):
                call()
        increment(x[2:])
        go.set()
        lrt.wait(x)
        increment(x)
    assert x.tolist() == [1, 1, 2, 2]


def test_a_limit_on_a_tasks_time_is_refused() -> None:
    with pytest.raises(lrt.UnsupportedError, match="timeout= to result"):
        boom.options(timeout=1)
    with pytest.raises(lrt.UnsupportedError, match="cannot be stopped"):
        lrt.task(timeout=1)(add.function)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prioritty": 1}, r"options\(prioritty=…\): known options are name, priority"),
        ({"priority": 1.5}, "priority is an integer, not 1.5"),
        ({"priority": True}, "priority is an integer, not True"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(lrt.UsageError, match=message):
        boom.options(**options)


@everywhere
def test_wrong_arguments_are_refused_at_the_submit(executor: str) -> None:
    with lrt.Runtime(executor=executor):
        for arguments in ((1,), (1, 2, 3)):
            with pytest.raises(TypeError, match=r"argument"):
                add.submit(*arguments)
        with pytest.raises(TypeError, match="third"):
            add.submit(1, 2, third=3)
        assert add.submit(1, 2).result() == 3


# -- placement --------------------------------------------------------------------------------


def test_what_no_device_can_take_is_refused_with_what_each_lacks() -> None:
    @lrt.task
    def product(a: Any) -> None: ...

    @product.variant("simulated", when=lambda a: a > 1)
    def product_simulated(a: Any) -> None: ...

    product.variants = product.variants[1:]
    with lrt.Runtime(devices="cpu,simulated", workers=1):
        with pytest.raises(lrt.PlacementError) as caught:
            product.submit(1)
        product.submit(2).result()
    lines = str(caught.value).splitlines()
    assert lines[0] == "no device can run product:"
    assert "  cpu: the task has no variant for cpu" in lines
    assert any(re.match(r"  simulated: when= of .*product_simulated refuses", s) for s in lines)
    assert lines[-1] == "  variants of the task: simulated"


# -- nesting ------------------------------------------------------------------------------------


@everywhere
def test_a_child_touches_only_what_its_parent_declared(executor: str) -> None:
    mine, others = np.zeros(4), np.zeros(4)

    @lrt.task
    def parent(x: InOut[Any], y: In[Any]) -> int:
        increment.submit(x[1:])
        total.submit(y).result()
        increment.submit(np.zeros(2))  # its own
        refused = 0
        for task, array in ((increment, others), (total, others), (increment, y)):
            with pytest.raises(lrt.AccessError, match="parent"):
                task.submit(array)
            refused += 1
        return refused

    with lrt.Runtime(executor=executor, workers=2):
        increment.submit(others)
        assert parent.submit(mine, np.zeros(2)).result() == 3
    assert mine.tolist() == [0, 1, 1, 1]
    assert others.tolist() == [1] * 4
