"""`capture`: a graph recorded once, to be run many times or planned beforehand.

Inside ``with capture() as graph`` every submit is recorded and nothing runs; the dependences are
found as in a runtime.  `Captured.run` then submits the whole graph as one task of the current
runtime, with new contents in the same arrays, and pays for no argument and no dependence again.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Mapping, Sequence
from types import FrameType, TracebackType
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from legato_rt import context
from legato_rt.access import IN, OUT
from legato_rt.arguments import Contents, rebuilt
from legato_rt.errors import UsageError
from legato_rt.formats.captured import recorded
from legato_rt.formats.recorded import GraphRecord
from legato_rt.future import Future
from legato_rt.graph import Graph
from legato_rt.node import Node, Scope, Step, search
from legato_rt.placement import Plan
from legato_rt.replay import Replay, Replayer
from legato_rt.task import Options, Task

Array = npt.NDArray[Any]


class Recorder:
    """Stands in for a runtime while a graph is captured."""

    node = None
    strict = False

    def __init__(self) -> None:
        self.runtime = self
        self.nodes: list[Node] = []
        self._graph = Graph()
        self._root = Scope(self, None)
        self._numbers = itertools.count()

    def submit(
        self,
        task: Task[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        options: Options,
        caller: FrameType,
        here: Any = None,
    ) -> Future[Any]:
        """Record a node and its edges."""
        args, bound = task.signature.bind(*args, **kwargs)
        plan = Plan(task, {"recorded": [v.kind for v in task.variants]}, False)
        node = Node(self._root, next(self._numbers), plan, args, bound, options, caller)
        futures, data = search(node)
        if futures:
            data = _with_values(node, data)
        self._graph.link(node, futures, data)
        self.nodes.append(node)
        return node

    def steps(self) -> list[Step]:
        """The recorded nodes with their predecessors."""
        values: list[list[int]] = [[] for _ in self.nodes]
        orders: list[list[int]] = [[] for _ in self.nodes]
        for node in self.nodes:
            for after in node.successors or ():
                values[after.seq].append(node.seq)
            for after in node.followers or ():
                orders[after.seq].append(node.seq)
        return [
            Step(n, tuple(dict.fromkeys(values[n.seq])), tuple(dict.fromkeys(orders[n.seq])))
            for n in self.nodes
        ]

    def check_plain_call(self, *_: object) -> None:
        """A plain call runs at once, as everywhere; nothing recorded has run before it."""

    def wait(self, *_: object, **__: object) -> NoReturn:
        """Nothing runs, so nothing can be waited for."""
        raise UsageError("a graph that is being captured does not run: wait after graph.run()")

    wait_for = host = cancel = add_callback = wait


class Captured:
    """A captured graph.

    Attributes
    ----------
    steps : tuple of Step
        The recorded tasks, in order of their submits.
    """

    def __init__(self) -> None:
        self.steps: tuple[Step, ...] = ()
        self._recorder: Recorder | None = Recorder()
        self._token: Any = None
        self._replayers: dict[int, Replayer] = {}
        self._data: list[tuple[Any, int]] = []

    def __enter__(self) -> Captured:
        if self._recorder is None:
            raise UsageError("a graph is captured once: call capture() for another")
        self._token = context.frame.set(self._recorder)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        context.frame.reset(self._token)
        assert self._recorder is not None
        if error is None:
            self.steps = tuple(self._recorder.steps())
            self._data = _union(self.steps)
        self._recorder = None

    def __len__(self) -> int:
        return len(self.steps)

    def run(self, *rebound: tuple[Array, Array]) -> Replay:
        """Run the graph in the current runtime, as one task that uses all that its tasks use.

        Parameters
        ----------
        *rebound : tuple of (ndarray, ndarray)
            A captured array and the one to use in its place this time, of the same shape, dtype
            and strides. Views of a contiguous array follow it.

        Returns
        -------
        Replay
            ``replay.result(future)`` is the value of a future of the capture.

        Raises
        ------
        UsageError
            If an array does not fit the one that it replaces, or that was not captured.
        """
        runtime = context.current_runtime(required=True)
        if isinstance(runtime, Recorder):
            raise UsageError("a captured graph cannot be run inside another capture")
        replayer = self._replayers.get(id(runtime))
        if replayer is None or replayer.runtime is not runtime:
            opened = context.open_runtimes
            known = self._replayers.items()
            self._replayers = {key: r for key, r in known if r.runtime in opened}
            replayer = self._replayers[id(runtime)] = Replayer(runtime, self.steps)
        caller = sys._getframe(1)
        if not rebound:
            return replayer.submit(self._data, None, caller)
        swap = _Swap(rebound, self._data)
        return replayer.submit([(swap(item), mode) for item, mode in self._data], swap, caller)

    def record(self, name: str = "") -> GraphRecord:
        """The graph without bodies and arrays, as the simulator and the planners take it."""
        return recorded(self.steps, name)

    def save(self, path: str | os.PathLike[str], name: str = "") -> None:
        """Write `record` as JSON, for ``legato simulate`` and `GraphRecord.load`."""
        self.record(name).save(os.fspath(path))


class _Swap:
    """Replaces captured arrays, and views of them, by others."""

    def __init__(
        self, rebound: Sequence[tuple[Array, Array]], data: Sequence[tuple[Any, int]]
    ) -> None:
        self._pairs = list(rebound)
        captured = [item for item, _ in data if isinstance(item, np.ndarray)]
        for old, new in rebound:
            same = (old.shape, old.dtype, old.strides) == (new.shape, new.dtype, new.strides)
            if not same:
                raise UsageError(
                    f"an array of shape {new.shape}, {new.dtype}, strides {new.strides} cannot "
                    "take the place of one of "
                    f"shape {old.shape}, {old.dtype}, strides {old.strides}"
                )
            if not any(np.may_share_memory(old, item) for item in captured):
                raise UsageError("an array to be replaced was not used in the captured graph")

    def __call__(self, value: Any) -> Any:
        """A captured argument with the new arrays in it."""
        return rebuilt(value, self._array)

    def _array(self, array: Array) -> Array:
        for old, new in self._pairs:
            if array is old:
                return new
            if np.may_share_memory(array, old):
                return _same_view(array, old, new)
        return array


def _same_view(view: Array, old: Array, new: Array) -> Array:
    """The view of ``new`` that lies in it as ``view`` lies in ``old``."""
    if not (old.flags.c_contiguous and new.flags.c_contiguous):
        raise UsageError(
            "views of an array that is not contiguous cannot follow it: rebind each of them"
        )
    offset = view.__array_interface__["data"][0] - old.__array_interface__["data"][0]
    made: Array = np.ndarray(view.shape, view.dtype, new.data, offset, view.strides)
    return made


def _union(steps: Sequence[Step]) -> list[tuple[Any, int]]:
    """All data of a graph, each with what is done to it; more than one use counts as both."""
    found: dict[int, tuple[Any, int]] = {}
    for step in steps:
        contents = Contents()
        for _, mode, value in step.node.task.signature.items(step.node.args, step.node.kwargs):
            contents.add(value, mode)
        for item, mode in contents.data:
            known = found.get(id(item))
            # What is only written here may be read elsewhere through another view of it.
            found[id(item)] = item, (IN if mode == IN and (known is None or known[1] == IN) else 3)
    return list(found.values())


def _with_values(node: Node, data: Sequence[tuple[Any, int]] | None) -> list[tuple[Any, int]]:
    """The data of a node, with a future in place of the value that it does not have yet."""
    found = list(data or ())
    for _, mode, value in node.task.signature.items(node.args, node.kwargs):
        found += [(future, mode) for future in Contents().add(value, mode).futures]
    return sorted(found, key=lambda pair: pair[1] == OUT)


def capture() -> Captured:
    """Record a graph: ``with capture() as graph: task.submit(…)``, then ``graph.run()``."""
    return Captured()
