"""Hard cases of arguments and results: odd objects, odd arrays, and aliases of tracked data."""

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import legato_rt as lrt
from legato_rt import In, InOut

HANG_S = 30.0

everywhere = pytest.mark.parametrize(
    "options",
    [
        pytest.param(
            {"executor": executor, "policy": policy, "workers": 2}, id=f"{executor}-{policy}"
        )
        for executor in ("serial", "threads")
        for policy in ("fifo", "steal")
    ],
)
strictness = pytest.mark.parametrize("strict", [False, True], ids=["lenient", "strict"])


class Hostile:
    """Raises whenever anybody compares, hashes, shows or pickles it."""

    def _refuse(self, *_: object) -> Any:
        raise AssertionError("a task's argument was looked into")

    __eq__ = __hash__ = __repr__ = __str__ = __reduce__ = __bool__ = __len__ = _refuse  # type: ignore[assignment]
    __iter__ = __copy__ = __deepcopy__ = _refuse


@lrt.task
def identity(value: Any) -> Any:
    return value


@lrt.task
def dig_out(value: list[Any]) -> Any:
    return value[1]["key"][0]


@lrt.task
def touch(value: InOut[Any]) -> int:
    return id(value)


@lrt.task
def increment(x: InOut[Any]) -> None:
    x += 1


@lrt.task
def zeros(shape: Any) -> Any:
    return np.zeros(shape)


@lrt.task
def total(x: In[Any]) -> float:
    return float(x.sum())


@lrt.task
def overwrite(source: In[Any]) -> None:
    source[0] = 7


@everywhere
def test_a_lock_goes_by_reference(options: dict[str, Any]) -> None:
    lock = threading.Lock()
    with lrt.Runtime(**options):
        assert identity.submit(lock).result() is lock
        assert touch.submit(lock).result() == id(lock)


@everywhere
@strictness
def test_special_methods_of_arguments_are_never_called(
    options: dict[str, Any], strict: bool
) -> None:
    hostile = Hostile()
    with lrt.Runtime(**options, strict=strict, trace=True):
        assert identity.submit(hostile).result() is hostile
        assert touch.submit(hostile).result() == id(hostile)
        assert touch.submit(value=hostile).result() == id(hostile)
        assert dig_out.submit([hostile, {"key": (hostile,)}]).result() is hostile
        assert identity.submit(identity.submit(hostile)).result() is hostile
        lrt.wait(hostile)


@everywhere
def test_special_methods_are_not_called_to_tell_of_a_failure(options: dict[str, Any]) -> None:
    @lrt.task
    def boom(value: InOut[Any]) -> None:
        raise ValueError("as asked")

    hostile = Hostile()
    with lrt.Runtime(**options):
        failed, after = boom.submit(hostile), touch.submit(hostile)
        assert "ValueError in boom" in str(failed.exception())
        assert isinstance(after.exception(), (lrt.DependencyError, type(None)))
        assert repr(failed)
        assert repr(after)


@everywhere
def test_a_generator_as_result_is_passed_through(options: dict[str, Any]) -> None:
    @lrt.task
    def count(n: int) -> Iterator[int]:
        yield from range(n)

    with lrt.Runtime(**options):
        assert list(count.submit(3).result()) == [0, 1, 2]
        shared = count.submit(3)
        assert identity.submit(shared).result() is shared.result()
        assert next(shared.result()) == 0


@everywhere
def test_strict_names_task_and_argument_of_a_write_to_an_in_array(options: dict[str, Any]) -> None:
    x = np.zeros(2)
    with lrt.Runtime(**options, strict=True):
        error = overwrite.submit(x).exception()
    assert isinstance(error, lrt.TaskError)
    assert isinstance(error.__cause__, lrt.AccessError)
    assert "overwrite" in str(error.__cause__)
    assert "source" in str(error.__cause__)
    assert x[0] == 0


@everywhere
def test_without_strict_a_write_to_an_in_array_happens_unordered(options: dict[str, Any]) -> None:
    x = np.zeros(2)
    with lrt.Runtime(**options):
        overwrite.submit(x).result()
    assert x.tolist() == [7, 0]


@everywhere
@strictness
@pytest.mark.parametrize("shape", [(0,), (0, 2), (0, 0, 2, 0), ()])
def test_empty_and_zero_dimensional_arrays(
    shape: tuple[int, ...], options: dict[str, Any], strict: bool
) -> None:
    x = np.zeros(shape)
    with lrt.Runtime(**options, strict=strict):
        for _ in range(3):
            increment.submit(x)
            increment.submit(x[...])
        assert total.submit(x).result() == 6.0 * x.size
        lrt.wait(x)
        assert zeros.submit(shape).result().shape == shape
    assert (x == 6).all()


VIEWS = {
    "transposed": lambda: np.zeros((3, 4)).T,
    "steps": lambda: np.zeros((6, 4))[::2, 1:3],
    "negative": lambda: np.zeros(6)[::-2],
    "fortran": lambda: np.zeros((2, 3), order="F"),
    "big-endian": lambda: np.zeros(4, dtype=">i4"),
    "field": lambda: np.zeros(4, dtype=[("a", "i1"), ("b", ">f8")])["b"],
    "unaligned": lambda: np.frombuffer(bytearray(33), np.uint8)[1:].view(np.float64),
    "shifted": lambda: np.lib.stride_tricks.sliding_window_view(np.zeros(5), 3, writeable=True)[
        ::3
    ],
}


@everywhere
@strictness
@pytest.mark.parametrize("kind", VIEWS)
def test_arrays_of_every_layout(kind: str, options: dict[str, Any], strict: bool) -> None:
    x = VIEWS[kind]()
    with lrt.Runtime(**options, strict=strict):
        for _ in range(4):
            increment.submit(x)
        increment.submit(x[:1])
        assert total.submit(x).result() == 4 * x.size + x[:1].size
        lrt.wait(x)
    assert (x[1:] == 4).all()
    assert (x[:1] == 5).all()


@everywhere
@strictness
def test_a_read_only_array_is_read_and_stays_read_only(
    options: dict[str, Any], strict: bool
) -> None:
    x = np.ones(3)
    x.flags.writeable = False
    with lrt.Runtime(**options, strict=strict):
        assert total.submit(x).result() == 3
        error = increment.submit(x).exception()
        assert isinstance(error, lrt.TaskError)
        assert "read-only" in str(error.__cause__)
    assert not x.flags.writeable
    assert x.tolist() == [1, 1, 1]


@lrt.task
def first_half(x: InOut[Any]) -> Any:
    return x[: len(x) // 2]


@lrt.task
def same(x: InOut[Any]) -> Any:
    return x


@everywhere
@pytest.mark.parametrize("alias", [same, first_half], ids=["argument", "view"])
def test_a_returned_alias_is_a_copy(alias: Any, options: dict[str, Any]) -> None:
    x = np.zeros(4)
    with lrt.Runtime(**options):
        future = alias.submit(x)
        increment.submit(x)
        mine = future.result()
        assert (mine == 0).all()
        assert not np.may_share_memory(mine, x)
        increment.submit(mine)
    assert x.tolist() == [1, 1, 1, 1]
    assert (mine == 1).all()


@everywhere
def test_an_alias_inside_a_container_is_a_copy(options: dict[str, Any]) -> None:
    x = np.zeros(2)

    @lrt.task
    def wrap(x: InOut[Any]) -> Any:
        return {"all": x, "some": [(x[:1], 3)]}

    with lrt.Runtime(**options):
        future = wrap.submit(x)
        increment.submit(x)
        found = future.result()
    assert found["all"].tolist() == [0, 0]
    assert found["some"][0][0].tolist() == [0]
    assert found["some"][0][1] == 3


@everywhere
def test_a_returned_tracked_array_is_a_copy(options: dict[str, Any]) -> None:
    x = np.zeros(2)

    @lrt.task
    def sneak() -> Any:
        return x

    with lrt.Runtime(**options):
        increment.submit(x).result()
        lent = sneak.submit().result()
        assert lent is not x
        increment.submit(x)
    assert lent.tolist() == [1, 1]


@everywhere
@pytest.mark.parametrize("alias", [same, first_half], ids=["argument", "view"])
def test_strict_refuses_a_returned_alias(alias: Any, options: dict[str, Any]) -> None:
    with lrt.Runtime(**options, strict=True):
        error = alias.submit(np.zeros(4)).exception()
    assert isinstance(error, lrt.TaskError)
    assert isinstance(error.__cause__, lrt.AccessError)
    assert "return a copy" in str(error.__cause__)


@everywhere
@strictness
def test_the_same_array_given_twice(options: dict[str, Any], strict: bool) -> None:
    @lrt.task
    def add(target: InOut[Any], source: In[Any]) -> None:
        target += source

    x = np.ones(4)
    with lrt.Runtime(**options, strict=strict):
        for _ in range(3):
            add.submit(x, x)
        add.submit(x[:2], x[2:])
        add.submit(target=x, source=x)
    assert x.tolist() == [32, 32, 16, 16]


@everywhere
@strictness
def test_a_future_passed_as_inout(options: dict[str, Any], strict: bool) -> None:
    with lrt.Runtime(**options, strict=strict):
        future = zeros.submit(3)
        increment.submit(future)
        before = total.submit(future)
        increment.submit(future)
        increment.submit(future)
        after = total.submit(future)
        assert before.result() == 3
        assert after.result() == 9
        assert future.result().tolist() == [3, 3, 3]


@everywhere
@strictness
def test_a_future_in_a_tuple_passed_as_inout(options: dict[str, Any], strict: bool) -> None:
    @lrt.task
    def increment_all(items: InOut[Any]) -> None:
        for item in items:
            item += 1

    x = np.zeros(3)
    with lrt.Runtime(**options, strict=strict):
        future = zeros.submit(3)
        increment_all.submit((future, x))
        increment.submit(x)
        increment.submit(future)
        assert future.result().tolist() == [2, 2, 2]
    assert x.tolist() == [2, 2, 2]


@everywhere
def test_a_list_that_is_written_holds_no_future(options: dict[str, Any]) -> None:
    with lrt.Runtime(**options), pytest.raises(lrt.UsageError, match="would be lost"):
        touch.submit([zeros.submit(3)])
