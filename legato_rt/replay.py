"""Running a captured graph: planned once, then at a fraction of the cost of its submits.

The whole graph is one node of the runtime, ordered among all others by the union of its data.  A
graph is measured the first time it runs, task by task, and its tasks are grouped into chunks after
that (`legato_rt.chunks`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from legato_rt import context
from legato_rt.chunks import Chunk, Run, group, play_chunk, substituted
from legato_rt.future import Future
from legato_rt.node import Node, Step
from legato_rt.placement import Plan
from legato_rt.task import task


class Replay:
    """One run of a captured graph.

    Attributes
    ----------
    future : Future
        Done when all tasks of the run are.
    """

    def __init__(self, future: Future[Any], run: Run) -> None:
        self.future = future
        self._run = run

    def wait(self, timeout: float | None = None) -> None:
        """Wait for the whole run; raise what it failed with."""
        self.future.result(timeout)

    def result(self, captured: Future[Any], timeout: float | None = None) -> Any:
        """The value that a future of the capture has in this run.

        Raises
        ------
        TaskError
            If its task failed, or one that it needs.
        """
        assert isinstance(captured, Node)
        error = self.future.exception(timeout)
        number = captured.seq
        value = self._run.values[number]
        if isinstance(value, Future):
            return value.result()
        if number in self._run.failed:
            raise self._run.failed[number]
        if error is not None and not self._run.failed:
            raise error
        return value


class Replayer:
    """Runs one captured graph in one runtime."""

    def __init__(self, runtime: Any, steps: Sequence[Step]) -> None:
        self.runtime = runtime
        self.steps = steps
        self.chunks: list[Chunk] | None = None
        self._runs = 0
        self._known: bool | None = None

    def submit(
        self,
        data: list[tuple[Any, int]],
        swap: Callable[[Any], Any] | None,
        caller: FrameType,
    ) -> Replay:
        """Make a run a node of the runtime's graph."""
        run = Run(self, len(self.steps), swap)
        node = self.runtime.submit_prepared(_REPLAY, (run,), data, caller)
        return Replay(node, run)

    def play(self, run: Run, parent: Node) -> None:
        """Run, or submit, all steps; called as the body of the run's node."""
        self._runs += 1
        if self._runs == 1 or not self._can_chunk():
            self._submit_steps(run)
            return
        if self.chunks is None:
            self.chunks = group(self.steps, self._means())
        if len(self.chunks) == 1:
            self.runtime.scope_of(parent).eager = True
            play_chunk(run, self.chunks[0])
        else:
            self._submit_chunks(run, parent)

    def _can_chunk(self) -> bool:
        """Whether bodies may be called as they are, on the CPU, without a record of each."""
        runtime = self.runtime
        if runtime.strict or runtime.keeps_trace or runtime.executor.transfers is not None:
            return False
        if self._known is None:
            self._known = all(self._variant(step.node) is not None for step in self.steps)
        return self._known

    def _variant(self, node: Node) -> Any:
        plan = self.runtime.plan_of(node.task)
        choice = plan.fixed
        if choice is None and not node.holes:
            choice = plan.choice(node.args, node.kwargs)
        return None if choice is None else choice.by_device.get("cpu")

    def function_of(self, node: Node) -> Callable[..., Any]:
        """What a chunk calls for a recorded node."""
        function: Callable[..., Any] = self._variant(node).function
        return function

    def _means(self) -> list[float]:
        """Nanoseconds that each step's task has taken on average."""
        counts: dict[str, list[int]] = {}
        for (name, _), (count, _, spent) in self.runtime.executor.totals().items():
            known = counts.setdefault(name, [0, 0])
            known[0] += count
            known[1] += spent
        empty = [0, 0]
        pairs = [counts.get(step.node.task.name, empty) for step in self.steps]
        return [spent / count if count else 0.0 for count, spent in pairs]

    def _submit_steps(self, run: Run) -> None:
        """Every step as a node of its own: the first time, and where bodies need the executor."""
        here = context.frame.get()
        for number, step in enumerate(self.steps):
            node = step.node
            args, kwargs = node.args, dict(node.kwargs or {})
            if run.swap is not None:
                args = tuple(map(run.swap, args))
                kwargs = {name: run.swap(value) for name, value in kwargs.items()}
            if node.holes:
                args = tuple(substituted(value, run.values) for value in args)
                kwargs = {k: substituted(value, run.values) for k, value in kwargs.items()}
            run.values[number] = self.runtime.submit(
                node.task, args, kwargs, node.options, node.site, here
            )

    def _submit_chunks(self, run: Run, parent: Node) -> None:
        assert self.chunks is not None
        scope = self.runtime.scope_of(parent)
        scope.whole = True
        nodes: list[Node] = []
        with self.runtime.executor.step() as scheduler:
            for chunk in self.chunks:
                node = self.runtime.prepare(_CHUNK, (run, chunk), scope)
                nodes.append(node)
                scheduler.submit(node, None, None, [nodes[i] for i in chunk.before])


@task(name="replay")
def replay_task(run: Run) -> None:
    """The body of a run's node."""
    here = context.frame.get()
    assert here is not None
    assert here.node is not None
    run.replayer.play(run, here.node)


@task(name="chunk")
def chunk_task(run: Run, chunk: Chunk) -> None:
    """The body of a chunk's node."""
    play_chunk(run, chunk)


_REPLAY = Plan(replay_task, {"host": ("cpu",)}, False)
_CHUNK = Plan(chunk_task, {"host": ("cpu",)}, False)
