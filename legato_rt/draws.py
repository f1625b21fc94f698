"""Numbers that look random and are not: the same seed and keys give the same draw anywhere.

What decides or simulates draws from here, so that a run can be repeated exactly.
"""

from __future__ import annotations

import math
import zlib

_MASK = (1 << 64) - 1


def draw(seed: int, *keys: int | str) -> float:
    """A number in [0, 1), evenly distributed over keys (the mixer of SplitMix64)."""
    state = seed & _MASK
    for key in keys:
        number = key if isinstance(key, int) else zlib.crc32(key.encode())
        state = (state ^ (number * 0x9E3779B97F4A7C15)) + 0x9E3779B97F4A7C15 & _MASK
        state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        state = (state ^ state >> 27) * 0x94D049BB133111EB & _MASK
        state ^= state >> 31
    return (state >> 11) / (1 << 53)


def draw_factor(spread: float, seed: int, *keys: int | str) -> float:
    """A lognormal factor with median 1; ``spread`` is the standard deviation of its logarithm."""
    radius = math.sqrt(-2 * math.log(1 - draw(seed, *keys, 1)))
    return math.exp(spread * radius * math.cos(2 * math.pi * draw(seed, *keys, 2)))
