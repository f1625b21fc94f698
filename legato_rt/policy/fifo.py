"""``fifo``: one queue for all workers, first come first served."""

from __future__ import annotations

from legato_rt.policy.base import Policy


class Fifo(Policy):
    """The null policy: whoever is free takes the oldest ready task."""

    name = "fifo"
