"""Tracked data: from the objects that a program passes to their regions.

Views are new objects every time and ids are reused, so a view is found first by identity (checked
through a weak reference), then by its layout.  Neither calls any method of the user's objects.
What regions, blocks and spaces are: `legato_rt.spaces`.
"""

from __future__ import annotations

import array as stdlib_array
import bisect
import ctypes
import mmap
import weakref
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from legato_rt.regions import Layout, canonical
from legato_rt.spaces import Block, Region, Space

Array = npt.NDArray[Any]

_CTYPES = (ctypes.Array, ctypes.Structure, ctypes.Union)
_BUFFERS = (bytearray, memoryview, mmap.mmap, stdlib_array.array, np.void, *_CTYPES)


_Form = tuple[int, tuple[int, ...], tuple[int, ...], int]
"""Address, shape, strides and item size of a view."""


class _ViewRef(weakref.ref[Array]):
    """A weak reference that knows the id it stands for and the region of the view."""

    __slots__ = ("key", "region")
    key: int
    region: Region


class Registry:
    """Finds the region of any object, and forgets what no longer exists.

    Not safe to call from two threads at once; the runtime's lock is held.

    Attributes
    ----------
    coarse : int
        How many views were ordered more than needed, because exact was too hard.
    """

    def __init__(self) -> None:
        self.coarse = 0
        self._views: dict[int, _ViewRef] = {}
        self._forms: dict[_Form, Region] = {}
        views = self._views
        self._forget_view = lambda ref: _drop(views, ref)
        self._objects: dict[int, Region] = {}
        self._starts: list[int] = []
        self._spaces: list[Space] = []
        # Weak references may die inside any allocation, also while the lock is held: only note it.
        self._gone: deque[Space] = deque()
        self._dead: deque[Space] = deque()
        self._roots: dict[int, weakref.ref[Any]] = {}

    def region(self, item: Any) -> Region:
        """Region of an array (by its memory) or of any other object (by its identity)."""
        view = self._views.get(id(item))
        if view is not None and view() is item and view.region.space is not None:
            return view.region
        if isinstance(item, np.ndarray):
            return self._of_array(item)
        buffer = _as_bytes(item)
        if buffer is not None:
            return self._of_array(buffer)
        known = self._objects.get(id(item))
        if known is None:
            self._bury()
            space = Space()
            space.item = item
            space.blocks = [Block(None)]
            known = self._objects[id(item)] = Region(space, space.blocks)
        return known

    def find(self, item: Any) -> Region | None:
        """Region of an object that is tracked already; `None` if it is not."""
        view = self._views.get(id(item))
        if view is not None and view() is item and view.region.space is not None:
            return view.region
        if not isinstance(item, np.ndarray):
            buffer = _as_bytes(item)
            if buffer is None:
                return self._objects.get(id(item))
            item = buffer
        layout = _layout(item)
        if layout is None or not self._overlapping(layout.start, layout.stop):
            return None
        return self._of_array(item)

    def blocks(self, item: Any) -> Sequence[Block]:
        """Blocks that may hold bytes of an object, as far as it is tracked; none is split."""
        view = self._views.get(id(item))
        if view is not None and view() is item and view.region.space is not None:
            return view.region.blocks
        array = item if isinstance(item, np.ndarray) else _as_bytes(item)
        if array is None:
            known = self._objects.get(id(item))
            return known.blocks if known is not None else ()
        layout = _layout(array)
        if layout is None:
            return ()
        spaces = [self._spaces[i] for i in self._overlapping(layout.start, layout.stop)]
        return [block for space in spaces for block in space.touching(layout)]

    def release(self, region: Region) -> None:
        """Count an object's task as finished; an object without tasks is let go."""
        region.pending -= 1
        space = region.space
        if not region.pending and space is not None and space.item is not None:
            if space.idle:
                self._let_go(space)
            else:
                self._dead.append(space)  # until its failure was told

    def _of_array(self, array: Array) -> Region:
        self._bury()
        address = array.__array_interface__["data"][0]
        form = address, array.shape, array.strides, array.itemsize
        region = self._forms.get(form)
        if region is None:
            region = self._new_form(array, form)
        ref = _ViewRef(array, self._forget_view)
        ref.key, ref.region = id(array), region
        self._views[ref.key] = ref
        return region

    def _new_form(self, array: Array, form: _Form) -> Region:
        layout = canonical(*form)
        if layout is None:
            return Space().region(None)
        space = self._space(array, layout)
        before = len(space.regions)
        region = self._forms[form] = space.region(layout)
        space.forms.append(form)
        if region.coarse and len(space.regions) > before:
            self.coarse += 1
        return region

    def _space(self, array: Array, layout: Layout) -> Space:
        hits = self._overlapping(layout.start, layout.stop)
        if len(hits) == 1:
            space = self._spaces[hits[0]]
            if space.start <= layout.start and layout.stop <= space.stop:
                return space
        root = _root(array)
        whole = _layout(root) or layout
        start = min(whole.start, layout.start)
        stop = max(whole.stop, layout.stop)
        hits = self._overlapping(start, stop)
        merged = [self._spaces[i] for i in hits]
        start = min([start, *(s.start for s in merged)])
        stop = max([stop, *(s.stop for s in merged)])
        periods = tuple(sorted({abs(s) for s in root.strides if abs(s) > root.itemsize})[::-1])
        space = Space(start, stop, periods)
        for other in merged:
            space.adopt(other)
        for i in reversed(hits):
            del self._spaces[i], self._starts[i]
        at = bisect.bisect(self._starts, start)
        self._starts.insert(at, start)
        self._spaces.insert(at, space)
        lender: Any = root.base
        dead = self._dead if isinstance(lender, _BUFFERS) else self._gone
        self._roots[id(space)] = weakref.ref(root, lambda _: dead.append(space))
        return space

    def _overlapping(self, start: int, stop: int) -> list[int]:
        """Indices of the spaces that touch an interval; spaces are disjoint and sorted."""
        first = bisect.bisect_right(self._starts, start) - 1
        if first < 0 or self._spaces[first].stop <= start:
            first += 1
        last = bisect.bisect_left(self._starts, stop)
        return list(range(first, last))

    def _bury(self) -> None:
        """Forget what is gone; a buffer that is in use through another view waits.

        An address is given out again: who used, or failed to write, the memory that was there
        before has nothing to do with what is there now.
        """
        while self._gone:
            self._let_go(self._gone.popleft())
        for _ in range(min(len(self._dead), 4)):
            space = self._dead.popleft()
            if space.idle:
                self._let_go(space)
            else:
                self._dead.append(space)

    def _let_go(self, space: Space) -> None:
        if space.item is not None:
            self._objects.pop(id(space.item), None)
            space.item = None
            return
        self._roots.pop(id(space), None)
        at = bisect.bisect_left(self._starts, space.start)
        if at < len(self._spaces) and self._spaces[at] is space:
            del self._spaces[at], self._starts[at]
        for form in space.forms:
            self._forms.pop(form, None)
        space.forget()


def _drop(views: dict[int, _ViewRef], ref: weakref.ref[Array]) -> None:
    assert isinstance(ref, _ViewRef)
    if views.get(ref.key) is ref:
        views.pop(ref.key, None)


def _layout(array: Array) -> Layout | None:
    address = array.__array_interface__["data"][0]
    return canonical(address, array.shape, array.strides, array.itemsize)


def _root(array: Array) -> Array:
    """The array that owns the memory, or the outermost one over a foreign buffer."""
    root = array
    base: Any = array.base
    while base is not None:
        if isinstance(base, np.ndarray):
            root = base
        base = getattr(base, "base", None)
    return root


def _as_bytes(item: Any) -> Array | None:
    """A byte array over an object that lends its memory; `None` for all others."""
    if not issubclass(type(item), _BUFFERS):
        return None
    try:
        if issubclass(type(item), _CTYPES):
            return np.frombuffer(item, np.uint8)
        if isinstance(item, np.void):
            return np.asarray(item)
        return np.asarray(memoryview(item))
    except (ValueError, TypeError, BufferError):
        return None
