"""Captured graphs: what they record, and that every run gives what plain submits give."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import legato_rt as lrt
from legato_rt import In, InOut, Out
from legato_rt.chunks import TINY_NS, group
from legato_rt.formats import GraphRecord

Array = np.ndarray


@lrt.task
def shift(c: InOut[Array], k: int) -> None:
    c *= 2
    c += k


@lrt.task
def total(c: In[Array]) -> int:
    return int(c.sum())


@lrt.task
def fill(c: Out[Array], value: int) -> None:
    c[...] = value


@lrt.task
def pair(a: int, b: int = 10, *, scale: int = 1) -> int:
    return (3 * a + b) * scale


@lrt.task
def gathered(values: list[int], named: dict[str, int]) -> int:
    return sum(values) + named["x"]


@lrt.task
def broken(a: int) -> int:
    raise ZeroDivisionError(a)


def sweep(call: Callable[..., Any], c: Array) -> Any:
    """Overlapping views, a future, a container of futures; the same by submit and by call."""
    for k in range(6):
        call(shift, c[k : k + 10], k)
    s = call(total, c)
    call(shift, c[::2], 3)
    p = call(pair, s, scale=2)
    q = call(pair, p, s)
    return call(gathered, [p, q, 5], {"x": s})


def submit(task: Any, *args: Any, **kwargs: Any) -> Any:
    return task.submit(*args, **kwargs)


def plain(task: Any, *args: Any, **kwargs: Any) -> Any:
    return task(*args, **kwargs)


@pytest.mark.parametrize("executor", ["serial", "threads"])
@pytest.mark.parametrize("policy", ["fifo", "steal"])
def test_every_run_equals_plain_calls(executor: str, policy: str) -> None:
    c, expected = np.arange(16), np.arange(16)
    with lrt.capture() as graph:
        last = sweep(submit, c)
    assert (c == expected).all()
    with lrt.Runtime(executor=executor, policy=policy, workers=2, validate=True):
        for _ in range(5):
            wanted = sweep(plain, expected)
            assert graph.run().result(last) == wanted
            lrt.wait(c)
            assert (c == expected).all()


@pytest.mark.parametrize("options", [{"strict": True}, {"trace": True}, {"devices": "cpu,null"}])
def test_runs_that_need_the_executor_for_each_task(options: dict[str, Any]) -> None:
    c, expected = np.arange(16), np.arange(16)
    with lrt.capture() as graph:
        last = sweep(submit, c)
    with lrt.Runtime(workers=2, **options):
        for _ in range(3):
            wanted = sweep(plain, expected)
            assert graph.run().result(last) == wanted


def test_a_machine_without_a_cpu_device() -> None:
    @lrt.task
    def double(c: InOut[Array]) -> None:
        c *= 2

    @double.variant("null")
    def double_null(c: Array) -> None:
        c *= 2

    c = np.ones(8, np.int64)
    with lrt.capture() as graph:
        double.submit(c[:4])
        double.submit(c)
    with lrt.Runtime(devices="null"):
        for _ in range(3):
            graph.run()
        lrt.wait(c)
    assert c.tolist() == [64] * 4 + [8] * 4


def test_a_returned_alias_of_a_value_is_a_value_of_its_own() -> None:
    @lrt.task
    def made() -> Array:
        return np.zeros(3)

    @lrt.task
    def same(x: In[Array]) -> Array:
        return x

    @lrt.task
    def raised(x: InOut[Array]) -> None:
        x += 1

    with lrt.capture() as graph:
        first = made.submit()
        second = same.submit(first)
        raised.submit(second)
        sums = total.submit(first), total.submit(second)
    with lrt.Runtime(workers=2):
        for _ in range(4):
            run = graph.run()
            assert [run.result(s) for s in sums] == [0, 3]


def test_runs_are_ordered_with_other_tasks() -> None:
    c = np.zeros(8, np.int64)
    with lrt.capture() as graph:
        shift.submit(c, 1)
    with lrt.Runtime(workers=2):
        for _ in range(4):
            graph.run()
            shift.submit(c[:4], 5)
        lrt.wait(c)
    expected = np.zeros(8, np.int64)
    for _ in range(4):
        shift.function(expected, 1)
        shift.function(expected[:4], 5)
    assert (c == expected).all()


def test_rebound_arrays_and_their_views() -> None:
    c, d, expected = np.zeros(16, np.int64), np.arange(16), np.arange(16)
    with lrt.capture() as graph:
        last = sweep(submit, c)
    with lrt.Runtime(workers=2):
        for _ in range(3):
            wanted = sweep(plain, expected)
            assert graph.run((c, d)).result(last) == wanted
        lrt.wait(d)
    assert (d == expected).all()
    assert not c.any()


@pytest.mark.parametrize("new", [np.zeros(15), np.zeros(16, np.int64), np.zeros(32)[::2]])
def test_an_array_that_does_not_fit_is_refused(new: Array) -> None:
    c = np.zeros(16)
    with lrt.capture() as graph:
        shift.submit(c, 1)
    with lrt.Runtime(workers=1), pytest.raises(lrt.UsageError, match="cannot take the place"):
        graph.run((c, new))


def test_an_array_that_was_not_captured_is_refused() -> None:
    with lrt.capture() as graph:
        shift.submit(np.zeros(4), 1)
    with lrt.Runtime(workers=1), pytest.raises(lrt.UsageError, match="was not used"):
        graph.run((np.zeros(4), np.zeros(4)))


def test_a_failure_fails_what_needs_it_and_nothing_else() -> None:
    with lrt.capture() as graph:
        first = pair.submit(1)
        bad = broken.submit(first)
        child = pair.submit(bad)
        other = pair.submit(2)
    with lrt.Runtime(workers=2):
        for _ in range(3):
            run = graph.run()
            with pytest.raises(lrt.TaskError, match="broken"):
                run.wait()
            assert run.result(first) == 13
            assert run.result(other) == 16
            with pytest.raises(lrt.TaskError) as caught:
                run.result(bad)
            assert isinstance(caught.value.__cause__, ZeroDivisionError)
            with pytest.raises(lrt.DependencyError, match="broken"):
                run.result(child)


def test_children_of_replayed_tasks_are_over_before_the_next_task() -> None:
    @lrt.task
    def parent(c: InOut[Array]) -> None:
        shift.submit(c[:2], 1)
        shift.submit(c[2:], 2)

    c, expected = np.zeros(4, np.int64), np.zeros(4, np.int64)
    with lrt.capture() as graph:
        parent.submit(c)
        s = total.submit(c)
    with lrt.Runtime(workers=1):
        for _ in range(4):
            shift.function(expected[:2], 1)
            shift.function(expected[2:], 2)
            assert graph.run().result(s) == expected.sum()


def test_nothing_runs_or_can_be_waited_for_inside_a_capture() -> None:
    c = np.zeros(4)
    with lrt.capture() as graph:
        f = total.submit(c)
        fill.submit(c, 1)
        for wait in (f.result, lambda: lrt.wait(c), f.cancel):
            with pytest.raises(lrt.UsageError, match="does not run"):
                wait()
    assert not c.any()
    assert len(graph) == 2
    with pytest.raises(lrt.UsageError, match="captured once"), graph:
        pass


def test_the_record_holds_the_dependences(tmp_path: Path) -> None:
    c = np.zeros((4, 4))
    with lrt.capture() as graph:
        shift.submit(c[:2], 1)
        shift.submit(c[2:], 1)
        s = total.submit(c)
        pair.submit(s)
        fill.submit(c, 0)
    graph.save(tmp_path / "graph.json", "five")
    record = GraphRecord.load(tmp_path / "graph.json")
    assert record.name == "five"
    assert [t.kind for t in record.tasks] == ["shift", "shift", "total", "pair", "fill"]
    assert [t.predecessors for t in record.tasks] == [(), (), (0, 1), (2,), (0, 1, 2)]
    assert record.tasks[0].writes == record.tasks[0].reads == (("d0", 64.0),)
    assert record.tasks[4].reads == ()


def test_grouping_never_closes_a_cycle() -> None:
    with lrt.capture() as graph:
        a = pair.submit(1)
        b = pair.submit(a)
        c = pair.submit(a)
        pair.submit(b, c)
    tiny, long = TINY_NS / 10, TINY_NS * 10.0
    assert [c.steps for c in group(graph.steps, [tiny] * 4)] == [[0, 1, 2, 3]]
    chunks = group(graph.steps, [long, long, tiny, tiny])
    assert [c.steps for c in chunks] == [[0, 2], [1], [3]]
    assert [c.before for c in chunks] == [[], [0], [0, 1]]


def test_tasks_that_write_a_value_of_the_graph_stay_in_order() -> None:
    @lrt.task
    def make() -> Array:
        return np.zeros(3)

    @lrt.task
    def add(x: InOut[Array]) -> None:
        time.sleep(0.001)
        x += 1

    @lrt.task
    def total(x: In[Array]) -> float:
        return float(x.sum())

    with lrt.capture() as graph:
        value = make.submit()
        add.submit(value)
        add.submit(value)
        found = total.submit(value)
    with lrt.Runtime(workers=4):
        assert [graph.run().result(found) for _ in range(4)] == [6.0] * 4
