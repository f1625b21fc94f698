"""What arguments a device with a memory of its own cannot take, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from legato_rt.access import OUT
from legato_rt.arguments import arrays_in
from legato_rt.regions import MAX_WORK, shares_memory

Array = npt.NDArray[Any]


class Residence:
    """The memories of a machine, as far as they limit where a task can run.

    Parameters
    ----------
    limits : mapping of str to int or None
        Devices with a memory of their own, each with the bytes that it holds if that is known.
    """

    def __init__(self, limits: Mapping[str, int | None]) -> None:
        self.limits = dict(limits)

    def refusals(self, items: Iterable[tuple[str, int, Any]]) -> dict[str, str]:
        """Devices that cannot take some arguments, each with the reason.

        Parameters
        ----------
        items : iterable of (name, direction, value)
            The arguments of one call.
        """
        arrays = [(name, mode, a) for name, mode, value in items for a in arrays_in(value)]
        reason = _unfit(arrays) or _aliased(arrays)
        if reason:
            return dict.fromkeys(self.limits, reason)
        needed = sum({id(a): a.nbytes for _, _, a in arrays}.values())
        return {
            device: f"the arguments need {needed} bytes, its memory holds {limit}"
            for device, limit in self.limits.items()
            if limit is not None and needed > limit
        }


def _unfit(arrays: list[tuple[str, int, Array]]) -> str:
    for name, _, array in arrays:
        if type(array) not in (np.ndarray, np.memmap):
            return f"{name} is a {type(array).__name__}, of which only a plain array gets there"
        if array.dtype.hasobject:
            return f"{name} holds Python objects, which cannot be copied to it"
        if not array.dtype.isnative:
            return f"{name} is not in the byte order of the machine"
        if 0 in array.strides and array.size > 1:
            return f"{name} is a broadcast view, whose elements share memory"
    return ""


def _aliased(arrays: list[tuple[str, int, Array]]) -> str:
    """Arguments that share memory are copies apart on a device, where a write would be lost."""
    for i, (name, mode, array) in enumerate(arrays):
        for other_name, other_mode, other in arrays[:i]:
            if (mode | other_mode) & OUT and array is not other and _overlap(array, other):
                return f"{other_name} and {name} share memory, and one is written"
    return ""


def _overlap(a: Array, b: Array) -> bool:
    try:
        return shares_memory(a, b, MAX_WORK)
    except np.exceptions.TooHardError:
        return True
