"""Whole graphs on arrays: ranks, critical path, static plans, lower bounds.

Everything here is a pure function of its arguments.  The inner loops are compiled by Numba when one
of them is first called, and kept on disk.
"""

from __future__ import annotations

from legato_rt.order.area import area_bound
from legato_rt.order.bounds import Bounds, lower_bounds
from legato_rt.order.dag import Dag
from legato_rt.order.heft import Links, Schedule, heft, sequence, violations
from legato_rt.order.portfolio import portfolio
from legato_rt.order.ranks import (
    critical_path,
    downward_rank,
    levels,
    upward_rank,
    weights,
)
from legato_rt.order.resources import Timetable, broken_limits, timetable
from legato_rt.order.steady import Steady, steady_state

__all__ = [
    "Bounds",
    "Dag",
    "Links",
    "Schedule",
    "Steady",
    "Timetable",
    "area_bound",
    "broken_limits",
    "critical_path",
    "downward_rank",
    "heft",
    "levels",
    "lower_bounds",
    "portfolio",
    "sequence",
    "steady_state",
    "timetable",
    "upward_rank",
    "violations",
    "weights",
]
