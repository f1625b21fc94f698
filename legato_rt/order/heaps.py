"""Binary heaps on arrays, for compiled loops: the entry with the least key is on top."""

from __future__ import annotations

from legato_rt.order.arrays import Floats, Ints
from legato_rt.order.jit import compiled


@compiled
def push(entries: Ints, keys: Floats, count: int, entry: int, key: float) -> int:
    """Add an entry; return how many there are."""
    place = count
    while place > 0:
        above = (place - 1) >> 1
        if keys[above] <= key:
            break
        keys[place], entries[place] = keys[above], entries[above]
        place = above
    keys[place], entries[place] = key, entry
    return count + 1


@compiled
def pop(entries: Ints, keys: Floats, count: int) -> int:
    """Remove the top entry and return it; there are ``count - 1`` left."""
    top = entries[0]
    left = count - 1
    key, entry = keys[left], entries[left]
    place, below = 0, 1
    while below < left:
        if below + 1 < left and keys[below + 1] < keys[below]:
            below += 1
        if keys[below] >= key:
            break
        keys[place], entries[place] = keys[below], entries[below]
        place, below = below, 2 * below + 1
    keys[place], entries[place] = key, entry
    return int(top)
