"""What counts as data, and whose it is: containers, records, returned values, failures."""

import array
import collections
import threading
from typing import Any

import numpy as np
import pytest

import legato_rt as lrt
from legato_rt import In, InOut


@lrt.task
def hold(gate: In[threading.Event]) -> None:
    gate.wait()


@lrt.task
def fill(x: InOut[Any], number: int) -> None:
    x[...] = number


@lrt.task
def total(items: Any) -> int:
    values = items.values() if isinstance(items, dict) else items
    return int(sum(np.sum(value) for value in values))


@lrt.task
def double(x: InOut[Any], also: object = None) -> None:
    x[0] = x[0] * 2 + 1


@lrt.task
def boom(x: InOut[Any]) -> None:
    raise ValueError


@lrt.task
def touch(x: In[Any]) -> str:
    return "read"


@lrt.task
def give_back(x: In[Any], gate: In[threading.Event]) -> Any:
    gate.wait()
    return x


class Numbers(list[Any]):
    """A list that is none of the built-in ones."""

    def __iter__(self) -> Any:
        raise AssertionError("the user's own method is not called")


def holders(x: Any) -> list[Any]:
    objects = np.empty(1, object)
    objects[0] = x[:2]
    return [lrt.tiles(x, 2), lrt.tiles(x, 2)[1:], objects, collections.OrderedDict(a=x)]


@pytest.mark.parametrize("number", range(4))
def test_arrays_inside_object_arrays_and_derived_containers_are_ordered(number: int) -> None:
    gate = threading.Event()
    x = np.zeros(4)
    with lrt.Runtime(workers=2) as rt:
        first = hold.submit(gate)
        fill.submit(x, 3)
        holder = holders(x)[number]
        expected = 3 * sum(np.size(part) for part in parts_of(holder))
        found = total.submit(holder)
        gate.set()
        assert found.result() == expected
        first.result()
        rt.wait()


def parts_of(holder: Any) -> list[Any]:
    return list(holder.values()) if isinstance(holder, dict) else list(holder.ravel())


def test_methods_of_a_derived_list_are_not_called() -> None:
    x = np.zeros(2)
    with lrt.Runtime(workers=1):
        written = fill.submit(x, 3)
        assert touch.submit(Numbers([x])).result() == "read"
        written.result()


def test_a_record_of_a_structured_array_is_a_view_of_it() -> None:
    @lrt.task
    def value(record: In[Any]) -> int:
        return int(record["a"])

    gate = threading.Event()
    x = np.zeros(3, [("a", "i4"), ("b", "u1")])
    with lrt.Runtime(workers=2):
        hold.submit(gate)
        fill.submit(x["a"], 7)
        found = value.submit(x[1])
        gate.set()
        assert found.result() == 7


@pytest.mark.parametrize("holder", [np.empty(1, object), collections.OrderedDict({0: None})])
def test_a_future_where_no_value_can_take_its_place_is_refused(holder: Any) -> None:
    with lrt.Runtime(workers=1):
        holder[0] = touch.submit(1)
        with pytest.raises(lrt.UsageError, match=r"use a list, tuple or dict"):
            touch.submit(holder)
        lrt.wait(holder)


def buffers() -> list[Any]:
    whole = bytearray(b"\x01\x02")
    return [whole, memoryview(bytearray(b"\x01\x02"))[::-1], array.array("l", [1, 2])]


@pytest.mark.parametrize("number", range(3))
def test_a_returned_buffer_is_a_copy(number: int) -> None:
    gate = threading.Event()
    x = buffers()[number]
    before = x[0]
    with lrt.Runtime(workers=2) as rt:
        copy = give_back.submit(x, gate)
        double.submit(copy)
        double.submit(x)
        gate.set()
        rt.wait()
        assert type(copy.result()) is type(x)
        assert (copy.result()[0], x[0]) == (before * 2 + 1, before * 2 + 1)


def test_a_returned_array_of_objects_shares_no_memory() -> None:
    x = np.zeros(4)

    @lrt.task
    def cut(x: InOut[Any]) -> Any:
        return lrt.tiles(x, 2)

    with lrt.Runtime(workers=1):
        found = cut.submit(x).result()
        assert not any(np.shares_memory(part, x) for part in found)


def test_a_returned_object_is_used_in_the_order_of_the_submits() -> None:
    """The one who gets it by the future comes before the one who was given it later."""

    class Counter:
        value = 1

    @lrt.task
    def step(counter: InOut[Any], by: int, after: object = None) -> None:
        counter.value = counter.value * by + 1

    gate = threading.Event()
    counter = Counter()
    with lrt.Runtime(workers=2, validate=True) as rt:
        same = give_back.submit(counter, gate)
        second = step.submit(same, 2)
        step.submit(counter, 3, second)
        step.submit(counter, 5)
        gate.set()
        rt.wait()
    assert counter.value == ((1 * 2 + 1) * 3 + 1) * 5 + 1


def test_memory_that_is_given_out_again_does_not_inherit_a_failure() -> None:
    reused = 0
    with lrt.Runtime(executor="serial", validate=True):
        for size in range(50):
            x = np.zeros(1000 + size)
            failed = boom.submit(x)
            failed.value.__cause__ = None  # its traceback holds the array
            address = x.__array_interface__["data"][0]
            del x
            y = np.zeros(1000 + size)
            reused += address == y.__array_interface__["data"][0]
            assert touch.submit(y).result() == "read"
            failed.exception()
    assert reused


def test_an_object_that_a_failed_task_should_have_written_is_missing() -> None:
    items = [1]
    with lrt.Runtime(workers=1, validate=True) as rt:
        failed = boom.submit(items)
        rt.wait()
        assert isinstance(touch.submit(items).exception(), lrt.DependencyError)
        assert failed.exception() is not None
        assert touch.submit(items).result() == "read"


def test_what_a_refused_child_waits_for_may_fail() -> None:
    gate = threading.Event()
    undeclared = np.zeros(1)

    @lrt.task
    def late(x: InOut[Any]) -> None:
        gate.wait()
        raise ValueError

    @lrt.task
    def both(x: InOut[Any], y: InOut[Any]) -> None:
        raise AssertionError("was refused")

    @lrt.task
    def parent(x: InOut[Any]) -> None:
        failing = late.submit(x)
        with pytest.raises(lrt.AccessError):
            both.submit(x, undeclared)
        gate.set()
        assert isinstance(failing.exception(), lrt.TaskError)

    with lrt.Runtime(workers=2, validate=True):
        touch.submit(undeclared).result()
        parent.submit(np.zeros(1)).result()


def test_an_array_of_a_body_may_lie_where_one_of_its_parent_lay() -> None:
    """While a task waits for its children, its arguments are gone and their addresses free."""

    @lrt.task
    def leaf(x: In[Any]) -> float:
        return float(x[0])

    @lrt.task
    def inner() -> None:
        leaf.submit(np.ones(1000))

    @lrt.task
    def middle(x: In[Any]) -> None:
        inner.submit()

    @lrt.task
    def outer() -> None:
        middle.submit(np.ones(1000))

    with lrt.Runtime(workers=2, validate=True):
        for _ in range(30):
            outer.submit()
