"""Carries out what the directory decides: copies between host memory and the devices'.

One set of decisions and its copies at a time: nobody sees a block between two states.  A device has
two workers, so one of them copies while the other computes.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from legato_rt.access import INOUT
from legato_rt.arguments import arrays_in, rebuilt
from legato_rt.backend import DeviceMemory
from legato_rt.data import Registry
from legato_rt.errors import DeviceOutOfMemory
from legato_rt.memory import (
    Allocate,
    Directory,
    Download,
    Drop,
    MemoryNode,
    Peer,
    Replica,
    Step,
    Upload,
)
from legato_rt.node import Node
from legato_rt.regions import Extent
from legato_rt.trace import Copy

Array = npt.NDArray[Any]
clock = time.perf_counter_ns


class Transfers:
    """Keeps all memory nodes of one runtime coherent.

    Parameters
    ----------
    registry : Registry
    lock : Lock
        The executor's: blocks are split under it.
    memories : mapping of str to (DeviceMemory, MemoryNode)
        By device name.

    Attributes
    ----------
    copies : list of Copy
        All copies that were made, if a trace is kept.
    copied_bytes : dict of str to int
        Bytes by what was done: upload, download, peer.
    """

    def __init__(
        self,
        registry: Registry,
        lock: threading.Lock,
        memories: Mapping[str, tuple[DeviceMemory, MemoryNode]],
        keeps_trace: bool,
    ) -> None:
        self._registry = registry
        self._lock = lock
        self._memories = dict(memories)
        self._directory = Directory()
        self._turn = threading.RLock()
        self._inside: dict[Node, str] = {}
        self._departures = 0
        self._left = threading.Condition(lock)
        self._keeps_trace = keeps_trace
        self.copies: list[Copy] = []
        self.copied_bytes: dict[str, int] = {}
        self._copied_ns = 0

    def enter_host(self, node: Node, args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> None:
        """Bring home what a body on the CPU uses."""
        for _, mode, value in node.task.signature.items(tuple(args), kwargs):
            for array in arrays_in(value):
                self.bring_home(array, mode)

    def bring_home(self, item: Any, mode: int = INOUT) -> None:
        """Make data valid in host memory for the access ``mode``."""
        with self._turn:
            with self._lock:
                region = self._registry.find(item)
                steps = self._directory.bring_home(region, mode) if region is not None else []
            self._carry_out(steps)

    def bring_all_home(self) -> None:
        """Make all data valid in host memory, but what running tasks use."""
        with self._turn:
            with self._lock:
                steps = self._directory.bring_all_home()
            self._carry_out(steps)

    def enter_device(
        self,
        device: str,
        worker: int,
        node: Node,
        args: Sequence[Any],
        kwargs: Mapping[str, Any] | None,
    ) -> tuple[tuple[Any, ...], dict[str, Any], list[Replica]]:
        """Arguments with device arrays in place of arrays, and the replicas pinned for them.

        Where only this device is left for the task, and it is full of what others use, it waits
        for them.

        Raises
        ------
        DeviceOutOfMemory
            If they do not fit beside what running tasks use.
        """
        while True:
            departures = self._departures
            try:
                return self._enter(device, worker, node, args, kwargs)
            except DeviceOutOfMemory:
                if not self._await_departure(device, node, departures):
                    raise

    def _enter(
        self,
        device: str,
        worker: int,
        node: Node,
        args: Sequence[Any],
        kwargs: Mapping[str, Any] | None,
    ) -> tuple[tuple[Any, ...], dict[str, Any], list[Replica]]:
        pinned: list[Replica] = []
        memory = self._memories[device][0]

        def replace(array: Array, mode: int) -> Any:
            return memory.on_worker(self._acquire(device, array, mode, pinned), worker)

        with self._turn:  # all arguments or none: two that each hold a part would wait forever
            try:
                found = [
                    rebuilt(value, functools.partial(replace, mode=mode))
                    for _, mode, value in node.task.signature.items(tuple(args), kwargs)
                ]
            except BaseException:
                self._unpin(pinned)
                raise
            with self._lock:
                self._inside[node] = device
        count = len(args)
        return tuple(found[:count]), dict(zip(kwargs or (), found[count:], strict=True)), pinned

    def leave_device(self, node: Node, pinned: Sequence[Replica]) -> None:
        """A body is over, on a device or on the host."""
        if pinned or node in self._inside:
            self._unpin(pinned)
            with self._left:
                del self._inside[node]
                self._departures += 1
                self._left.notify_all()

    def _await_departure(self, device: str, node: Node, departures: int) -> bool:
        """Return once a task left the device since; false if none is sure to, or need not.

        A task with children may wait for some that wait here, so it does not count.
        """
        if node.choice is not None and len(node.choice.devices) > 1:
            return False
        with self._left:
            if self._departures == departures:
                if not any(d == device and n.scope is None for n, d in self._inside.items()):
                    return False
                self._left.wait()
        return True

    def _unpin(self, pinned: Sequence[Replica]) -> None:
        with self._lock:
            for replica in pinned:
                replica.pins -= 1

    def _acquire(self, device: str, array: Array, mode: int, pinned: list[Replica]) -> Any:
        node = self._memories[device][1]
        with self._turn:
            with self._lock:
                region = self._registry.region(array)
                key = (id(region), array.shape, array.strides, array.dtype.str)
                replica, steps = self._directory.acquire(node, key, region, array, mode)
            pinned.append(replica)
            self._carry_out(steps)
            with self._lock:
                self._directory.commit(replica, array, mode)
        return replica.array

    def _carry_out(self, steps: Sequence[Step]) -> None:
        for step in steps:
            match step:
                case Allocate(replica, view):
                    try:
                        replica.array = self._allocate(replica, view)
                    except BaseException:
                        with self._lock:
                            self._directory.abandon(replica)
                        raise
                case Upload(replica, view):
                    with self._timed("upload", replica):
                        self._memory(replica).upload(view, replica.array)
                case Download(replica, view, extents):
                    with self._timed("download", replica):
                        self._download(replica, view, extents)
                case Peer(source, target):
                    with self._timed("peer", target):
                        self._memory(target).copy_from_peer(source.array, target.array)
                case Drop(replica):
                    self._memory(replica).free(replica.array)
                    replica.array = None

    def _allocate(self, replica: Replica, view: Array) -> Any:
        """Make a device array; a full device is emptied of what nobody uses and asked again."""
        memory = self._memory(replica)
        try:
            return memory.allocate(view)
        except DeviceOutOfMemory:
            with self._lock:
                steps = self._directory.evict_idle(replica.memory)
        self._carry_out(steps)
        return memory.allocate(view)

    def _download(self, replica: Replica, view: Array, extents: Sequence[Extent] | None) -> None:
        memory = self._memory(replica)
        if extents is None:
            memory.download(replica.array, view)
            return
        whole = np.empty(view.shape, view.dtype)
        memory.download(replica.array, whole)
        np.copyto(view, whole, where=_inside(view, extents))

    def _memory(self, replica: Replica) -> DeviceMemory:
        return self._memories[replica.memory.name][0]

    @property
    def devices(self) -> Container[str]:
        """Devices with a memory of their own."""
        return self._memories

    def bytes_per_s(self) -> float | None:
        """How fast copies have been, once there were enough to tell."""
        if self._copied_ns < 1_000_000:
            return None
        return sum(self.copied_bytes.values()) / self._copied_ns * 1e9

    @contextlib.contextmanager
    def _timed(self, what: str, replica: Replica) -> Iterator[None]:
        start = clock()
        yield
        copy = Copy(what, replica.memory.name, replica.nbytes, start, clock())
        self._copied_ns += copy.stop_ns - copy.start_ns
        self.copied_bytes[what] = self.copied_bytes.get(what, 0) + replica.nbytes
        if self._keeps_trace:
            self.copies.append(copy)


def _inside(view: Array, extents: Sequence[Extent]) -> npt.NDArray[np.bool_]:
    """Which elements of a view lie in some extents, none of which cuts an element of the view."""
    addresses = np.full(view.shape, view.__array_interface__["data"][0], np.int64)
    for axis, (length, stride) in enumerate(zip(view.shape, view.strides, strict=True)):
        steps = np.arange(length, dtype=np.int64) * stride
        addresses += steps.reshape([-1 if i == axis else 1 for i in range(view.ndim)])
    inside = np.zeros(view.shape, bool)
    for extent in extents:
        runs = extent.runs()
        assert runs is not None
        at = np.searchsorted(runs.starts, addresses, "right") - 1
        inside |= (at >= 0) & (addresses < runs.stops[np.maximum(at, 0)])
    return inside
