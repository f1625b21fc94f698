"""``portfolio``: many schedules of a known graph are simulated, and the best one is carried out.

What is tried: several rank rules and biases, a dispatch rule with searched numbers, and annealing
(`legato_rt.order.portfolio`).  The effort is for graphs that run often or long; a graph that was
not recorded beforehand is planned by `heft` as it shows.
"""

from __future__ import annotations

from collections.abc import Sequence

from legato_rt.order import Dag, Links, Schedule, portfolio
from legato_rt.order.arrays import Floats
from legato_rt.policy.planned import Planned


class Portfolio(Planned):
    """Plans by trying.

    Parameters
    ----------
    effort : int, optional
        Looks at a task that the search may take; by default more for larger graphs.
    seed : int
    """

    name = "portfolio"

    def __init__(self, effort: int | None = None, seed: int = 0) -> None:
        self._effort = effort
        self._seed = seed

    def plan(
        self, dag: Dag, seconds: Floats, links: Links | None, kinds: Sequence[str]
    ) -> Schedule:
        """See `Planned.plan`."""
        return portfolio(
            dag, seconds, kinds=kinds, links=links, effort=self._effort, seed=self._seed
        )
