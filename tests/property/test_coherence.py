"""Wherever tasks run and whatever is evicted, the outcome is that of the plain program.

Random programs over overlapping views, each task on a device drawn at random: the CPU, two OpenCL
devices that are halves of one, and the null device.  Their memories are so small that something is
evicted for nearly every task.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import legato_rt as lrt
from legato_rt import In, InOut, Out
from legato_rt.node import Node
from legato_rt.policy.base import Policy
from tests.helpers.views import Step, small, view

cl = pytest.importorskip("pyopencl")

from legato_rt.devices import opencl_discovery  # noqa: E402
from legato_rt.devices.opencl import kernel  # noqa: E402

Array = npt.NDArray[np.int64]
SIDE = 8
DEVICES = "cpu,opencl:0,opencl:1,null"

SOURCE = """
kernel void mix_in(global const long *a, long n, global long *c, long m, long factor) {
    long sum = 0;
    for (long i = 0; i < n; i++) sum = (sum + a[i]) % 1000003;
    for (long i = 0; i < m; i++) c[i] = c[i] * factor % 1000003 + sum;
}
kernel void fill_up(global long *c, long m, long value) {
    for (long i = 0; i < m; i++) c[i] = value + i;
}
"""


def total(a: Array) -> int:
    return int(a.sum() % 1000003)


@lrt.task
def mix(a: In[Array], c: InOut[Array], factor: int) -> int:
    c[...] = c * factor % 1000003 + total(a)
    return total(c)


@lrt.task
def fill(c: Out[Array], value: int) -> None:
    c[...] = value + np.arange(c.size).reshape(c.shape)


mix.variant("null")(mix.function)
fill.variant("null")(fill.function)


@mix.variant("opencl")
def mix_opencl(a: Any, c: Any, factor: int) -> int:
    m, n, k = (np.int64(number) for number in (c.size, a.size, factor))
    run = kernel(c.queue, "mix_in", source=SOURCE)
    run(c.queue, (1,), (1,), a.base_data, n, c.base_data, m, k)
    return total(c.get())


@fill.variant("opencl")
def fill_opencl(c: Any, value: int) -> None:
    run = kernel(c.queue, "fill_up", source=SOURCE)
    run(c.queue, (1,), (1,), c.base_data, np.int64(c.size), np.int64(value))


@mix.variant("cuda")
def mix_cuda(a: Any, c: Any, factor: int) -> int:
    added = total(a)
    c *= factor
    c %= 1000003
    c += added
    return total(c)


@fill.variant("cuda")
def fill_cuda(c: Any, value: int) -> None:
    import cupy

    c[...] = value + cupy.arange(c.size).reshape(c.shape)


class Op(NamedTuple):
    """Fill a view, mix one into another, or have the program use one."""

    what: str
    array: int = 0
    target: tuple[Step, ...] = ()
    source: tuple[Step, ...] = ()
    number: int = 1
    alias: bool = False


VIEWS = ("slice", "slice", "index", "reverse", "transpose", "reshape", "newaxis", "diagonal")
chains = st.lists(
    st.builds(Step, st.sampled_from(VIEWS), small, small, st.sampled_from((1, 2, 3, -1, -2))),
    max_size=3,
).map(tuple)
operations = st.lists(
    st.builds(
        Op,
        st.sampled_from(("mix", "mix", "mix", "mix", "mix", "fill", "read", "write")),
        st.sampled_from((0, 1)),
        chains,
        chains,
        st.integers(1, 9),
        st.sampled_from((False, False, False, False, True)),
    ),
    max_size=60,
)


class Scatter(Policy):
    """Any worker that has a variant, at random."""

    timed = True
    chains = False

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def place(self, node: Node, able: Sequence[int], by: int) -> int | None:
        return random.Random(self.seed * 1_000_003 + node.seq).choice(able)


def run(
    ops: Sequence[Op],
    call: Callable[..., Any],
    host: Callable[[Array, str], Any],
) -> tuple[list[Any], Array]:
    """The program; what its tasks return, and the arrays that they work on."""
    bases: Array = np.arange(2 * SIDE * SIDE, dtype=np.int64).reshape(2, SIDE, SIDE)
    results: list[Any] = []
    for op in ops:
        target = view(bases[op.array], op.target)
        if op.what == "mix":
            other = bases[op.array if op.alias else 1 - op.array]
            results.append(call(mix, view(other, op.source), target, op.number))
        elif op.what == "fill":
            call(fill, target, op.number)
        else:
            with host(target, "in" if op.what == "read" else "inout"):
                results.append(total(target))
                if op.what == "write":
                    target += op.number
    return results, bases


class Plain:
    """Stands for lending where nothing runs beside the program."""

    def __init__(self, item: Array, mode: str) -> None: ...

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...


@pytest.fixture(scope="module")
def two_parts() -> Iterator[None]:
    """Have the real OpenCL device found as two devices."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEGATO_RT_OPENCL_PARTS", "2")
        opencl_discovery.devices.cache_clear()
        found = opencl_discovery.devices("opencl")
        if sum(not opencl_discovery.is_checker(device) for device in found.values()) < 2:
            pytest.skip("no OpenCL device here that can be parted")
        yield
    opencl_discovery.devices.cache_clear()


def check(devices: str, executor: str, ops: list[Op], limit: int | None, seed: int) -> None:
    """Run a program both ways and compare."""
    results, expected = run(ops, lambda task, *args: task(*args), Plain)
    with lrt.Runtime(
        workers=2,
        devices=devices,
        executor=executor,
        policy=Scatter(seed),
        memory_limit=limit,
        validate=True,
    ) as rt:
        got, base = run(ops, lambda task, *args: task.submit(*args), rt.host)
        got = [future if isinstance(future, int) else future.result() for future in got]
    assert base.tolist() == expected.tolist()
    assert got == results


limits = st.sampled_from((300, 600, 1100, None))
seeds = st.integers(0, 1000)


@pytest.mark.parametrize("executor", ["threads", "serial"])
@given(operations, limits, seeds)
@example([Op("fill"), Op("mix"), Op("mix", alias=True), Op("mix", 1)] * 5, 1100, 1)
@settings(max_examples=80)
def test_outcome_is_the_sequential_one(
    two_parts: None, executor: str, ops: list[Op], limit: int | None, seed: int
) -> None:
    check(DEVICES, executor, ops, limit, seed)


@pytest.mark.gpu
@given(operations, limits, seeds)
@settings(max_examples=80)
def test_so_it_is_with_a_gpu(two_parts: None, ops: list[Op], limit: int | None, seed: int) -> None:
    check(f"{DEVICES},cuda", "threads", ops, limit, seed)


def test_memory_this_small_never_stops_evicting(two_parts: None) -> None:
    """What the test above is about does happen: copies by the hundred, on every device."""
    rng = random.Random(7)
    parts = [(Step("slice", rng.randrange(2), rng.randrange(8), 1),) for _ in range(100)]
    ops = [Op("mix", i % 2, part if i % 3 else (), (), 3) for i, part in enumerate(parts)]
    with lrt.Runtime(
        workers=2,
        devices=DEVICES,
        executor="serial",
        policy=Scatter(1),
        memory_limit=1100,
        trace=True,
    ) as rt:
        _, base = run(ops, lambda task, *args: task.submit(*args), rt.host)
    copies = rt.trace.copies
    assert base.tolist() == run(ops, lambda task, *args: task(*args), Plain)[1].tolist()
    assert {copy.device for copy in copies} == set(DEVICES.split(",")[1:])
    assert {copy.what for copy in copies} == {"upload", "download", "peer"}
    assert len(copies) > 100
