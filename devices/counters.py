"""Counters of energy that only go up, as hardware has them, and what can befall them.

A counter may wrap around, stop, start anew, sleep with the machine or go away.  What cannot be
told apart for sure is not guessed: the counter says why, and counts no more.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from legato_rt.errors import DeviceError

STALL_S = 2.0
"""No part of a machine that is on draws nothing for so long: its counter stands."""

SUSPENDED_S = 1.0
"""The clocks of `Clocks` drift apart by less unless the machine was suspended."""

SLACK_J = 10.0
"""More than any counter takes up in one step, however soon after the step before."""


def _with_sleep() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Clocks(NamedTuple):
    """Two clocks that nobody sets: one stands while the machine is suspended, one does not.

    Attributes
    ----------
    awake : callable
    always : callable
        Both return seconds.
    """

    awake: Callable[[], float] = time.monotonic
    always: Callable[[], float] = _with_sleep if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic


CLOCKS = Clocks()


class _Sample(NamedTuple):
    value: int
    awake_s: float
    asleep_s: float


class Counter:
    """Joules of one counter since this object was made.

    Parameters
    ----------
    what : str
        For messages.
    read : callable
        Returns what the counter shows.
    unit_j : float
        Joules of one step.
    span : int, optional
        The counter goes back to zero there; not at all by default.
    limit_w : float
        No part of a machine draws more. It tells a wrap from a counter that started anew.
    clocks : Clocks

    Raises
    ------
    DeviceError
        By ``read``, if the counter cannot be read.

    Notes
    -----
    A counter that wraps must be read at least every `period_s` seconds.
    """

    def __init__(
        self,
        what: str,
        read: Callable[[], int],
        unit_j: float,
        span: int | None = None,
        limit_w: float = 1000.0,
        clocks: Clocks = CLOCKS,
    ) -> None:
        self._what = what
        self._read = read
        self._unit_j = unit_j
        self._span = span
        self._limit_w = limit_w
        self._clocks = clocks
        self._steps = 0
        self._last = self._sample()
        self.problem = ""
        self._stands = False
        self.period_s: float | None = None
        if span is not None:
            self.period_s = max(0.5, min(10.0, span * unit_j / limit_w / 2))

    @property
    def mute(self) -> bool:
        """Whether it never counted anything, and nothing else befell it."""
        return not self._steps and (self._stands or not self.problem)

    def joules(self) -> float | None:
        """Joules so far; `None` if nothing was counted yet, or not everything."""
        if not self.problem:
            try:
                self._advance(self._sample())
            except DeviceError as error:
                self.problem = str(error)
        return self._steps * self._unit_j if self._steps and not self.problem else None

    def _sample(self) -> _Sample:
        value = self._read()
        awake_s = self._clocks.awake()
        return _Sample(value, awake_s, self._clocks.always() - awake_s)

    def _advance(self, now: _Sample) -> None:
        last = self._last
        elapsed_s = now.awake_s - last.awake_s
        asleep_s = now.asleep_s - last.asleep_s
        if now.value == last.value:
            if elapsed_s >= STALL_S:
                self._stands = True
                self.problem = f"{self._what} stands still for {elapsed_s:.0f} s"
            return
        limit_j = self._limit_w * elapsed_s + SLACK_J
        steps = now.value - last.value
        if steps < 0:
            if self._span is None or asleep_s > SUSPENDED_S:
                asleep = f" while the machine slept for {asleep_s:.0f} s" if asleep_s > 1 else ""
                self.problem = f"{self._what} started anew{asleep}"
                return
            steps += self._span
        if steps < 0 or steps * self._unit_j > limit_j:
            self.problem = f"{self._what} jumped by more than {limit_j:.0f} J in {elapsed_s:.1f} s"
        elif self._span is not None and (steps + self._span) * self._unit_j <= limit_j:
            self.problem = (
                f"{self._what} was not read for {elapsed_s:.0f} s, in which it may have wrapped "
                "around more than once"
            )
        self._steps += steps
        self._last = now
