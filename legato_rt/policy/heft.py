"""``heft``: a static plan by upward rank, each task where it is done first, gaps filled.

Topcuoglu, Hariri and Wu, IEEE TPDS 13(3), 2002; carried out and renewed as `Planned` says.
"""

from __future__ import annotations

from collections.abc import Sequence

from legato_rt.order import Dag, Links, Schedule, heft
from legato_rt.order.arrays import Floats
from legato_rt.order.ranks import Rule
from legato_rt.policy.planned import Planned


class Heft(Planned):
    """Plans by HEFT.

    Parameters
    ----------
    rank : rule of `legato_rt.order.weights`
        What the upward rank makes of a task's times on different devices.
    """

    name = "heft"

    def __init__(self, rank: Rule = "mean") -> None:
        self._rank = rank

    def plan(
        self, dag: Dag, seconds: Floats, links: Links | None, kinds: Sequence[str]
    ) -> Schedule:
        """See `Planned.plan`."""
        return heft(dag, seconds, rank=self._rank, links=links)
