"""``powercap``: as fast as a limit on the machine's power allows.

The limit is a hard rule of admission, in the terms of the power model: what the whole machine draws
idle, and what each running task adds to that, never exceed it.  A task that would is not started,
however idle its worker is, until enough others are over; the one that has waited longest is not
overtaken by others that would keep it waiting.

While power is plentiful a task goes where it is done first, as with ``eft``; once it is short, to
the device and operating point of least energy, since then energy is what takes the time.

A task that submitted others is taken to wait for them: if all that run do, another is started even
so, since they could wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from legato_rt.errors import SettingError
from legato_rt.future import READY
from legato_rt.node import Node
from legato_rt.placement import Candidate
from legato_rt.policy.eft import Eft
from legato_rt.site import Site

ROUNDING_W = 1e-9


class PowerCap(Eft):
    """Starts a task only if the power limit allows it.

    Attributes
    ----------
    drawn_w : float
        What the machine draws now, in the terms of the model.
    """

    name = "powercap"
    tunes = True
    rouses = True

    def equip(self, site: Site) -> None:
        """See `Policy.equip`.

        Raises
        ------
        SettingError
            If the machine cannot keep to the limit even with one task at a time.
        """
        super().equip(site)
        self._cap_w = float("inf") if site.power_cap_w is None else site.power_cap_w
        idle_w = sum(d.workers * d.power.idle_w for d in site.machine.devices)
        for device in site.machine.devices:
            points = device.points or (device.point(),)
            needed_w = idle_w + min(p.active_w for p in points) - device.power.idle_w
            if needed_w > self._cap_w:
                raise SettingError(
                    f"power_cap_w={self._cap_w:g}: with {device.name} at its most frugal the "
                    f"machine draws {needed_w:g} W; leave it out, or allow more"
                )
        self._idle_w = self.drawn_w = idle_w
        self._running: dict[Node, float] = {}
        self._kept: Node | None = None

    def choose(self, node: Node, candidates: Sequence[Candidate]) -> Candidate:
        """Where it is done first if that can start now, else where it takes the least energy."""
        spare_w = self._cap_w - self._idle_w
        fits = [c for c in candidates if self._more_w(c) <= spare_w + ROUNDING_W]
        first = super().choose(node, fits)
        if self._fits(self._more_w(first)):
            return first
        return min(fits, key=lambda c: (self._more_w(c) * c.seconds, c.finish_s))

    def started(self, node: Node, worker: int) -> None:
        """See `Policy.started`."""
        super().started(node, worker)
        more_w = self._more_w(node.placed) if node.placed is not None else 0.0
        self._running[node] = more_w
        self.drawn_w += more_w

    def finished(self, node: Node) -> None:
        """See `Policy.finished`."""
        super().finished(node)
        self.drawn_w -= self._running.pop(node, 0.0)

    def pop(self, worker: int) -> Node | None:
        """The next task of the worker's device, if the power is there."""
        return super().pop(worker) if self.has_work(worker) else None

    def has_work(self, worker: int) -> bool:
        """See `Policy.has_work`."""
        head = self.lanes[self.workers[worker]].head()
        return head is not None and self.admits(head)

    def admits(self, node: Node) -> bool:
        """See `Policy.admits`."""
        if node.placed is None:
            return True
        more_w = self._more_w(node.placed)
        kept = self._kept if self._kept is not None and self._kept.state == READY else None
        if self._fits(more_w) or all(map(_waits, self._running)):
            if kept is None or kept is node or kept.placed is None:
                return True
            return self._fits(more_w + self._more_w(kept.placed))
        if kept is None:
            self._kept = node
        return False

    def _fits(self, more_w: float) -> bool:
        return self.drawn_w + more_w <= self._cap_w + ROUNDING_W

    def _more_w(self, placed: Candidate) -> float:
        """What a run adds to the machine's idle power."""
        device = self.lanes[placed.device].device
        return (device.point(placed.point).active_w - device.power.idle_w) * placed.width


def _waits(node: Node) -> bool:
    """Whether a running task waits for what it submitted."""
    return node.scope is not None and node.scope.pending > 0
