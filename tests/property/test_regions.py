"""Regions against brute force: the bytes of a view, which views share one, and how they split."""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from legato_rt import regions
from legato_rt.data import Registry, Space
from legato_rt.graph import History
from legato_rt.regions import Extent, Layout, canonical
from tests.helpers.views import Array, Step, random_view, roots, steps, strided_view, touched, view

which = st.integers(0, len(roots()) - 1)


def layout_of(array: Array) -> Layout | None:
    address = array.__array_interface__["data"][0]
    return canonical(address, array.shape, array.strides, array.itemsize)


def bytes_of(extent: Extent | None) -> frozenset[int]:
    """The bytes of an extent, by its runs."""
    if extent is None:
        return frozenset()
    runs = extent.runs()
    assert runs is not None
    return frozenset(
        address
        for start, stop in zip(runs.starts.tolist(), runs.stops.tolist(), strict=True)
        for address in range(start, stop)
    )


@given(which, steps)
def test_a_layout_holds_exactly_the_bytes_of_its_view(root: int, chain: tuple[Step, ...]) -> None:
    array = view(roots()[root], chain)
    layout = layout_of(array)
    assert (layout is None) == (array.size == 0)
    if layout is not None:
        extent = Extent(layout)
        assert bytes_of(extent) == touched(array)
        assert extent.size() == len(touched(array))
        assert (extent.start, extent.stop) == (min(touched(array)), max(touched(array)) + 1)


@given(which, steps, steps)
def test_extents_overlap_and_split_as_sets_of_bytes_do(
    root: int, first: tuple[Step, ...], second: tuple[Step, ...]
) -> None:
    array = roots()[root]
    a, b = view(array, first), view(array, second)
    mine, theirs = layout_of(a), layout_of(b)
    if mine is None or theirs is None:
        return
    common = touched(a) & touched(b)
    assert Extent(mine).overlaps(Extent(theirs)) == bool(common)
    parts = Extent(mine).split(Extent(theirs))
    assert parts is not None
    assert bytes_of(parts[0]) == common
    assert bytes_of(parts[1]) == touched(a) - touched(b)


@given(st.lists(st.integers(0, 40), min_size=2), st.lists(st.integers(0, 40), min_size=2))
def test_runs_are_sets(first: list[int], second: list[int]) -> None:
    """Differences of differences: extents that no longer have a layout."""
    whole = np.zeros(48, np.uint8)
    base = whole.__array_interface__["data"][0]
    left: Extent | None = Extent(layout_of(whole))
    expected = touched(whole)
    for at, length in zip(first, second, strict=False):
        part = whole[at : at + 1 + length % 5 : 1 + length % 2]
        if left is None or part.size == 0:
            break
        parts = left.split(Extent(layout_of(part)))
        assert parts is not None
        assert bytes_of(parts[0]) == expected & touched(part)
        left, expected = parts[1], expected - touched(part)
        assert bytes_of(left) == expected
    assert all(address >= base for address in expected)


def conflicts(views: list[Array]) -> Iterator[tuple[bool, bool]]:
    """For each pair of views: whether their regions conflict, and whether they share a byte."""
    registry = Registry()
    found = [registry.region(v) for v in views]
    held = [set(region.blocks) for region in found]
    addresses = [touched(v) for v in views]
    for i in range(len(views)):
        for j in range(i):
            yield bool(held[i] & held[j]), bool(addresses[i] & addresses[j])


def some_views(rng: random.Random) -> list[Array]:
    if rng.randrange(3):
        array = rng.choice(roots())
        return [random_view(array, rng) for _ in range(5)]
    memory = np.zeros(1024, np.uint8)
    return [strided_view(memory, rng) for _ in range(5)]


def check_pairs(count: int, seed: int) -> None:
    rng = random.Random(seed)
    seen = {True: 0, False: 0}
    while sum(seen.values()) < count:
        for found, expected in conflicts(some_views(rng)):
            assert found == expected, (seed, seen)
            seen[expected] += 1
    assert min(seen.values()) > count // 10


def test_two_thousand_pairs_conflict_exactly_if_they_share_a_byte() -> None:
    check_pairs(2_000, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_ten_thousand_pairs_conflict_exactly_if_they_share_a_byte(seed: int) -> None:
    check_pairs(10_000, seed=100 + seed)


@pytest.mark.parametrize("max_runs", [0, 1, 3, 10])
@pytest.mark.parametrize("max_work", [0, 1, 10_000])
def test_beyond_the_work_bound_no_conflict_is_missed(
    monkeypatch: pytest.MonkeyPatch, max_runs: int, max_work: int
) -> None:
    monkeypatch.setattr(regions, "MAX_RUNS", max_runs)
    monkeypatch.setattr(regions, "MAX_WORK", max_work)
    rng = random.Random(max_runs + max_work)
    for trial in range(200):
        for found, expected in conflicts(some_views(rng)):
            assert found or not expected, trial


@given(st.lists(st.tuples(st.integers(0, 23), st.integers(1, 24), st.integers(1, 3)), min_size=2))
def test_beyond_the_work_bound_no_conflict_of_slices_is_missed(
    cuts: list[tuple[int, int, int]],
) -> None:
    memory = np.zeros(24, np.uint8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(regions, "MAX_RUNS", 2)
        views = [memory[low : low + length : step] for low, length, step in cuts]
        assert all(found or not expected for found, expected in conflicts(views))


def test_blocks_that_overlap_are_not_counted_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two blocks of a view too fine to split share bytes: their sizes do not add up."""
    monkeypatch.setattr(regions, "MAX_RUNS", 2)
    memory = np.zeros(20, np.uint8)
    views = [memory[:10], memory[:10:2], memory[:15], memory[12:15]]
    assert all(found or not expected for found, expected in conflicts(views))


def check_space(space: Space, views: list[tuple[Any, Array]]) -> None:
    """The blocks are disjoint, and each region is the exact union of its blocks."""
    seen: set[int] = set()
    for block in space.blocks:
        mine = bytes_of(block.extent)
        assert mine
        assert not seen & mine
        seen |= mine
    for region, array in views:
        held = [bytes_of(block.extent) for block in region.blocks]
        assert frozenset().union(*held) == touched(array)
        assert all(region in block.regions for block in region.blocks)


@given(which, st.lists(steps, max_size=8))
def test_blocks_are_disjoint_and_regions_the_union_of_theirs(
    root: int, chains: list[tuple[Step, ...]]
) -> None:
    registry = Registry()
    array = roots()[root]
    views = []
    space = None
    for chain in chains:
        part = view(array, chain)
        region = registry.region(part)
        views.append((region, part))
        if part.size:
            assert registry.region(part) is registry.find(part) is region
            space = space or region.space
            assert region.space is space
    if space is not None:
        check_space(space, views)


@given(which, steps, st.lists(steps, min_size=1, max_size=4))
def test_splits_keep_the_history(
    root: int, first: tuple[Step, ...], others: list[tuple[Step, ...]]
) -> None:
    registry = Registry()
    array = roots()[root]
    part = view(array, first)
    region = registry.region(part)
    writer = object()
    for block in region.blocks:
        history = block.histories["scope"] = History()
        history.writer = writer  # type: ignore[assignment]
    for chain in others:
        other = view(array, chain)
        written = [
            bytes_of(block.extent)
            for block in registry.region(other).blocks
            if "scope" in block.histories
        ]
        assert frozenset().union(*written) == touched(other) & touched(part)
    histories = [block.histories["scope"] for block in region.blocks]
    assert len({id(history) for history in histories}) == len(histories)


@given(which, st.lists(steps, max_size=6))
def test_equal_sets_of_bytes_are_one_region(root: int, chains: list[tuple[Step, ...]]) -> None:
    """A view that is taken anew, or upside down, is looked up and not split again."""
    registry = Registry()
    array = roots()[root]
    for chain in chains:
        part = view(array, chain)
        again = np.flip(part) if part.ndim else part
        if part.size:
            assert registry.region(part) is registry.region(again)
