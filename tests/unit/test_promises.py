"""Promises that hold in corners: hints, buffers, closing while others submit, data on devices."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import threading
import time
import weakref
from typing import Any

import numpy as np
import pytest

import legato_rt as lrt
from legato_rt import In, InOut
from legato_rt import InOut as Both
from legato_rt.access import IN, INOUT

Array = np.ndarray


def test_a_direction_in_a_union_counts() -> None:
    class Local:
        pass

    @lrt.task
    def f(
        a: InOut[Array] | None,
        b: InOut[Local] | None,
        c: Both[Local],
        d: Local,
        e: In[Array] | int = 0,
    ) -> None:
        pass

    assert f.signature.modes == (INOUT, INOUT, INOUT, IN, IN)


def test_a_direction_that_would_be_lost_is_refused() -> None:
    with pytest.raises(lrt.UsageError, match=r"write InOut\[list"):

        @lrt.task
        def f(a: list[InOut[Array]]) -> None:
            pass

    with pytest.raises(lrt.UsageError, match="several directions"):

        @lrt.task
        def g(a: In[Array] | InOut[Array]) -> None:
            pass


def test_a_ctypes_array_and_a_view_of_it_are_one() -> None:
    @lrt.task
    def add(x: InOut[Any]) -> None:
        time.sleep(0.002)
        for i in range(len(x)):
            x[i] += 1

    @lrt.task
    def double(x: InOut[Array]) -> None:
        x *= 2

    memory = (ctypes.c_double * 5)()
    view = np.ctypeslib.as_array(memory)
    with lrt.Runtime(workers=4):
        for _ in range(5):
            add.submit(memory)
            double.submit(view)
        lrt.wait(memory)
    assert list(memory) == [62.0] * 5


def test_what_was_submitted_while_a_runtime_closes_runs_or_is_refused() -> None:
    @lrt.task
    def add(x: InOut[Array]) -> None:
        x += 1

    for _ in range(5):
        x, futures = np.zeros(1), list[Any]()
        runtime = lrt.Runtime(workers=2)

        def submit(x: Array = x, futures: list[Any] = futures) -> None:
            with contextlib.suppress(lrt.ClosedError, lrt.NoRuntimeError):
                while True:
                    futures.append(add.submit(x))

        thread = threading.Thread(target=submit)
        thread.start()
        time.sleep(0.005)
        runtime.close()
        thread.join()
        assert all(f.done() for f in futures)
        assert x[0] == len(futures)


def test_waiting_for_all_gives_back_what_is_on_a_device() -> None:
    @lrt.task
    def add(x: InOut[Array]) -> None:
        x += 1

    add.variant("null")(add.function)
    x = np.zeros(5)
    with lrt.Runtime(devices="null"):
        add.submit(x)
        lrt.wait()
        assert (x == 1).all()


def test_waiting_for_all_gives_back_what_strict_took() -> None:
    @lrt.task
    def add(x: InOut[Array]) -> None:
        x += 1

    x = np.zeros(5)
    with lrt.Runtime(workers=1, strict=True):
        over = threading.Event()
        add.submit(x).add_done_callback(lambda _: over.set())
        over.wait()
        lrt.wait()
        x += 1


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("make", [np.ma.array, np.matrix])
def test_an_array_with_a_meaning_of_its_own_stays_on_the_host(make: Any) -> None:
    @lrt.task
    def square(x: In[Array]) -> Any:
        return x * x

    square.variant("null")(square.function)
    x = make([[1.0, 2.0], [3.0, 4.0]])
    with lrt.Runtime(devices="cpu,null"):
        result = square.submit(x).result()
        assert type(result) is type(x)


def test_a_captured_graph_keeps_no_closed_runtime() -> None:
    @lrt.task
    def nothing() -> None:
        pass

    with lrt.capture() as graph:
        nothing.submit()
    kept = []
    for _ in range(3):
        with lrt.Runtime(workers=1) as runtime:
            graph.run().wait()
            kept.append(weakref.ref(runtime))
        del runtime
    gc.collect()
    assert sum(r() is not None for r in kept) <= 1


def test_an_async_function_is_no_task() -> None:
    async def later() -> int:
        return 1

    with pytest.raises(lrt.UsageError, match="later is async"):
        lrt.task(later)
