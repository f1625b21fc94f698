"""Parked workers: who has nothing to do, and who is woken when there is work.

Nobody sleeps while there is work: a worker that is woken looks for it, and whoever finds some and
leaves some wakes the next.  While one is on its way to look, no other is woken.
"""

from __future__ import annotations

from collections.abc import Sequence


class Pool:
    """Workers of one device that have nothing to do, and how many are on their way to look."""

    __slots__ = ("idle", "searching")

    def __init__(self) -> None:
        self.idle: list[int] = []
        self.searching = 0


class Parking:
    """Keeps the idle workers of all devices.

    Parameters
    ----------
    workers : sequence of str
        Device name of each worker.

    Attributes
    ----------
    pools : dict of str to Pool
        By device.
    pool_of : list of Pool
        By worker.
    woken : list of bool
        Workers that were woken and did not look yet.
    wakes : list of int
        Workers that the executor must wake; it empties the list.
    """

    def __init__(self, workers: Sequence[str]) -> None:
        self.pools = {device: Pool() for device in workers}
        self.pool_of = [self.pools[device] for device in workers]
        self.woken = [False] * len(workers)
        self.wakes: list[int] = []

    def park(self, worker: int) -> None:
        """A worker has nothing to do."""
        pool = self.pool_of[worker]
        if worker not in pool.idle:
            pool.idle.append(worker)

    def is_parked(self, worker: int) -> bool:
        """Whether a worker is idle and not on its way to look for work."""
        return worker in self.pool_of[worker].idle

    def look(self, worker: int) -> None:
        """A woken worker looks for work now, or is given some."""
        if self.woken[worker]:
            self.woken[worker] = False
            self.pool_of[worker].searching -= 1

    def wake(self, worker: int) -> None:
        """Send a parked worker to look."""
        pool = self.pool_of[worker]
        pool.idle.remove(worker)
        pool.searching += 1
        self.woken[worker] = True
        self.wakes.append(worker)

    def wake_one(self, device: str) -> None:
        """Send a parked worker of a device to look, unless one is on its way."""
        pool = self.pools[device]
        if pool.idle and not pool.searching:
            self.wake(pool.idle[-1])
