"""``eft``: earliest finish time, each task where it is expected to be done first.

The rule of StarPU's ``dmda`` (Augonnet et al., Concurrency and Computation 23(2), 2011): waiting
time in the device's queue, plus the transfers it needs, plus the time it takes there.
"""

from __future__ import annotations

from collections.abc import Sequence

from legato_rt.node import Node
from legato_rt.placement import Candidate
from legato_rt.policy.placing import Placing


class Eft(Placing):
    """Places a ready task where it finishes first."""

    name = "eft"

    def choose(self, node: Node, candidates: Sequence[Candidate]) -> Candidate:
        """The candidate that is done first; among equals the one of least energy."""
        return min(candidates, key=lambda c: (c.start_s + c.seconds, c.joules))
