"""Where data lies in a real run, for policies that predict."""

from __future__ import annotations

from typing import Any

from legato_rt.access import OUT
from legato_rt.executor.transfers import Transfers
from legato_rt.machine import Device
from legato_rt.spaces import Region

# Until copies were timed: a slow bus, and what starting a copy takes.
BYTES_PER_S = 4e9
LATENCY_S = 30e-6


class Replicas:
    """Fulfils `Whereabouts` from the blocks themselves: what is not current on a device is copied.

    Attributes
    ----------
    transfers : Transfers or None
        Tells which devices have a memory of their own, and how fast copies have been.
    """

    moves = True

    def __init__(self) -> None:
        self.transfers: Transfers | None = None

    def transfer(self, node: Any, device: Device, now: float) -> tuple[float, float]:
        """See `Whereabouts.transfer`."""
        assert self.transfers is not None
        own = device.name if device.name in self.transfers.devices else None
        lacking = [
            region
            for region, mode in node.accesses or ()
            if mode != OUT and not _is_current(region, own)
        ]
        if not lacking:
            return 0.0, 0.0
        rate = self.transfers.bytes_per_s() or BYTES_PER_S
        return len(lacking) * LATENCY_S + sum(map(_nbytes, lacking)) / rate, 0.0

    def bring(self, node: Any, device: Device, now: float) -> None:
        """Nothing: a worker copies what its body needs when it starts."""


def _is_current(region: Region, device: str | None) -> bool:
    if device is None:
        return all(block.home for block in region.blocks)
    return all(any(r.memory.name == device for r in b.replicas) for b in region.blocks)


def _nbytes(region: Region) -> int:
    sizes = (block.extent.size() for block in region.blocks if block.extent is not None)
    return sum(size for size in sizes if size is not None)
