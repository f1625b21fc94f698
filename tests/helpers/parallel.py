"""Runs a random program on a real `legato_rt.Runtime`."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import legato_rt as lrt
from legato_rt import In, InOut, Out, context
from tests.helpers.bodies import digest, fingerprint, places, world
from tests.helpers.engine import Engine, Frame, use
from tests.helpers.programs import Op, Program

HANG_S = 120.0


@contextlib.contextmanager
def unless_it_hangs(runtime: lrt.Runtime) -> Iterator[lrt.Runtime]:
    """Open a validated runtime; if a wait in it times out, tell why and leave it as it is."""
    runtime.__enter__()
    try:
        yield runtime
    except TimeoutError:
        context.open_runtimes.remove(runtime)
        context.frame.set(None)
        nodes = list(runtime.scheduler.nodes)  # type: ignore[attr-defined]
        raise AssertionError("hangs:\n" + "\n".join(n.story for n in nodes)) from None
    except BaseException as error:
        runtime.__exit__(type(error), error, error.__traceback__)
        raise
    else:
        runtime.__exit__(None, None, None)


class Parallel(Engine):
    """Runs a program on a runtime.

    Attributes
    ----------
    touched : dict of str to (frozenset, frozenset)
        For each body that ran, the places that it read and those that it wrote.
    futures : dict of str to Future
    """

    def __init__(self, program: Program, **options: Any) -> None:
        super().__init__(program)
        self.bases = world()
        self.futures: dict[str, Any] = {}
        self.touched: dict[str, tuple[frozenset[Any], frozenset[Any]]] = {}
        self._ops: dict[str, tuple[Op, list[Any]]] = {}
        self._gate = threading.Event()
        self._options = options
        self._step = self._task()

    def outcome(self) -> tuple[Any, ...]:
        """All that is compared."""
        unheard: set[str] = set()
        self.runtime = lrt.Runtime(validate=True, trace=True, **self._options)
        try:
            with unless_it_hangs(self.runtime):
                self._hold()
                self.play(Frame("", [(item, True) for item in self.bases]))
                self._gate.set()
                self.runtime.wait(timeout=HANG_S)
        except ExceptionGroup as group:
            unheard = {self._key(error) for error in group.exceptions}
        states = {key: self._state(future) for key, future in list(self.futures.items())}
        return states, [fingerprint(item) for item in self.bases], self.log, unheard

    @property
    def cancelled(self) -> set[str]:
        """Tasks that were cancelled in time."""
        return {key for key, future in self.futures.items() if future.cancelled()}

    def _task(self) -> Any:
        @lrt.task
        def step(
            key: str,
            r0: In[Any] = None,
            r1: In[Any] = None,
            w0: InOut[Any] = None,
            w1: InOut[Any] = None,
            o0: Out[Any] = None,
        ) -> Any:
            op, outer = self._ops[key]
            args = [[x for x in group if x is not None] for group in ((r0, r1), (w0, w1), (o0,))]
            self.touched[key] = places(tuple(args[0])), places((*args[1], *args[2]))
            return self.body(key, op, args, outer)

        return step

    def _hold(self) -> None:
        """Keep all workers busy until the program waits."""
        if self.program.hold and self._options.get("executor") != "serial":
            gate = lrt.task(name="gate")(self._gate.wait)
            for _ in range(self._options.get("workers", 1)):
                gate.options(priority=99).submit()

    def submit(self, frame: Frame, key: str, op: Op, args: Sequence[list[Any]]) -> Any:
        """Submit a task by its usual name, and by keywords."""
        self._ops[key] = op, self.visible(frame)
        named = {f"{k}{i}": x for k, xs in zip("rwo", args, strict=True) for i, x in enumerate(xs)}
        first = [named.pop("r0")] if "r0" in named else []
        task = self._step.options(priority=op.priority, name=key)
        self.futures[key] = task.submit(key, *first, **named)
        return self.futures[key]

    def wait(self, frame: Frame) -> None:
        """Wait for all that the body, or the program, submitted."""
        if not frame.prefix:
            self._gate.set()
        lrt.wait()

    def ask(self, frame: Frame, future: Any) -> Any:
        """The value, or how it ended."""
        if not frame.prefix:
            self._gate.set()
        try:
            return digest(future.result())
        except lrt.TaskError:
            return "failed"
        except lrt.DependencyError:
            return "dependency"
        except lrt.CancelledError:
            return "cancelled"

    def reclaim(self, frame: Frame, item: Any) -> bool:
        """Wait for the data, until all its failures are told."""
        if not frame.prefix:
            self._gate.set()
        heard = False
        while True:
            try:
                lrt.wait(item)
            except (lrt.TaskError, lrt.DependencyError):
                heard = True
            else:
                return not heard

    def lend(self, frame: Frame, item: Any, mode: str, which: int) -> Any:
        """Use the data in a block."""
        if not frame.prefix:
            self._gate.set()
        try:
            with lrt.host(item, mode) as lent:
                return use(lent, mode, which)
        except lrt.DependencyError:
            return "unwritten"

    def cancel(self, frame: Frame, futures: list[Any]) -> None:
        """Cancel what has not started."""
        for future in futures:
            future.cancel()

    def _key(self, error: BaseException) -> str:
        """Name of the task that failed with an error."""
        return next(key for key, f in list(self.futures.items()) if f.value is error)

    def _state(self, future: Any) -> Any:
        if future.cancelled():
            return "cancelled"
        error = future.exception()
        if error is None:
            return "ok", fingerprint(future.result())
        if isinstance(error, lrt.DependencyError):
            return "dependency", frozenset(self._key(root) for root in error.roots)
        assert isinstance(error, lrt.TaskError), error
        return "failed"
