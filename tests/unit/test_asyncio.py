"""Futures are awaitable, and each asyncio task sees the runtime that it opened."""

import asyncio
import threading
from typing import Any

import pytest

import legato_rt as lrt

HANG_S = 30.0

everywhere = pytest.mark.parametrize("executor", ["serial", "threads"])


@lrt.task
def add(first: Any, second: Any = 1) -> Any:
    return first + second


@lrt.task
def boom() -> None:
    raise ValueError("as asked")


@lrt.task
def hold(running: threading.Event, go: threading.Event) -> str:
    running.set()
    assert go.wait(HANG_S)
    return "released"


@everywhere
def test_await_gives_the_result(executor: str) -> None:
    async def main() -> int:
        with lrt.Runtime(executor=executor):
            first = add.submit(1)
            return int(await add.submit(first)) + int(await first)

    assert asyncio.run(main()) == 5


def test_await_lets_the_loop_go_on() -> None:
    async def main() -> str:
        running, go = threading.Event(), threading.Event()
        with lrt.Runtime(workers=1):
            future = hold.submit(running, go)
            asyncio.get_running_loop().call_soon(go.set)  # runs only if the loop does
            return await future

    assert asyncio.run(main()) == "released"


@everywhere
def test_await_raises_what_the_task_raised(executor: str) -> None:
    async def main() -> None:
        with lrt.Runtime(executor=executor):
            failed = boom.submit()
            with pytest.raises(lrt.DependencyError):
                await add.submit(failed)
            with pytest.raises(lrt.TaskError) as caught:
                await failed
            assert isinstance(caught.value.__cause__, ValueError)

    asyncio.run(main())


def test_await_of_a_cancelled_task_raises() -> None:
    async def main() -> None:
        running, go = threading.Event(), threading.Event()
        with lrt.Runtime(workers=1):
            held, lost = hold.submit(running, go), add.submit(1)
            assert running.wait(HANG_S)
            assert lost.cancel()
            with pytest.raises(lrt.CancelledError):
                await lost
            go.set()
            await held

    asyncio.run(main())


def test_many_coroutines_wait_at_once() -> None:
    async def one(n: int) -> int:
        return int(await add.submit(await add.submit(n)))

    async def main() -> list[int]:
        with lrt.Runtime(workers=2):
            return await asyncio.gather(*map(one, range(200)))

    assert asyncio.run(main()) == list(range(2, 202))


def test_several_coroutines_await_one_future() -> None:
    async def wait_for(future: Any) -> str:
        return str(await future)

    async def main() -> list[str]:
        running, go = threading.Event(), threading.Event()
        with lrt.Runtime(workers=1):
            future = hold.submit(running, go)
            waits = [asyncio.create_task(wait_for(future)) for _ in range(5)]
            asyncio.get_running_loop().call_soon(go.set)
            return await asyncio.gather(*waits)

    assert asyncio.run(main()) == ["released"] * 5


def test_a_coroutine_that_gives_up_leaves_the_task_alone() -> None:
    async def main() -> str:
        running, go = threading.Event(), threading.Event()
        with lrt.Runtime(workers=1):
            future = hold.submit(running, go)

            async def wait() -> None:
                await future

            waits = asyncio.create_task(wait())
            await asyncio.to_thread(running.wait, HANG_S)
            waits.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waits
            go.set()
            return future.result()

    assert asyncio.run(main()) == "released"


def test_a_task_outlives_the_loop_that_waited_for_it() -> None:
    running, go = threading.Event(), threading.Event()

    async def main(future: Any) -> None:
        async def wait() -> None:
            await future

        waits = asyncio.create_task(wait())
        await asyncio.sleep(0)
        waits.cancel()

    with lrt.Runtime(workers=1):
        future = hold.submit(running, go)
        asyncio.run(main(future))
        go.set()
        assert future.result() == "released"


def test_each_asyncio_task_has_its_own_runtime() -> None:
    async def main() -> None:
        both = asyncio.Barrier(2)

        async def one() -> bool:
            with lrt.Runtime(workers=1) as runtime:
                await both.wait()
                future = add.submit(1)
                assert await future == 2
                await both.wait()
                return future.parent.runtime is runtime

        assert await asyncio.gather(one(), one()) == [True, True]

    asyncio.run(main())


def test_submit_in_threads_of_asyncio() -> None:
    async def main() -> int:
        with lrt.Runtime(workers=1), lrt.Runtime(workers=1):
            return await asyncio.to_thread(lambda: add.submit(1).result())

    assert asyncio.run(main()) == 2
