"""Pipelines in steady state: every frame passes through all stages, each on its own device.

Frames follow one another, so what limits the rate is the device with the most work per frame; its
work is the period.  Energy per frame is that of the stages and that of idling: a device that is
used draws its idle watts for the rest of the period, one that is not used is off.

The mapping is found by descent: for every set of devices that could be on, each stage starts where
it adds the least energy, and single stages and pairs are moved as long as that saves some.  The
result is good, not proven best; without idle watts it is the best.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from legato_rt.errors import UsageError
from legato_rt.order.arrays import Floats, Ints
from legato_rt.order.ranks import seconds_of

MAX_DEVICES = 10


@dataclass(frozen=True, slots=True, eq=False)
class Steady:
    """A mapping of stages to devices, and what a frame costs.

    Attributes
    ----------
    device : array of int, shape (stages,)
    period_s : float
        Time from frame to frame.
    joules, idle_j : float
        Energy of the stages, and of idling.
    """

    device: Ints
    period_s: float
    joules: float
    idle_j: float

    @property
    def total_j(self) -> float:
        """Energy of a frame."""
        return self.joules + self.idle_j


def steady_state(seconds: npt.ArrayLike, joules: npt.ArrayLike, idle_w: npt.ArrayLike) -> Steady:
    """Map the stages of a pipeline to devices for the least energy per frame.

    Parameters
    ----------
    seconds, joules : array_like, shape (stages, devices)
        Time and energy of each stage on each device, what that draws when idle included; times are
        infinite where a stage cannot run.
    idle_w : array_like, shape (devices,)
    """
    times = np.asarray(seconds, dtype=np.float64)
    times = seconds_of(times, len(times))
    energy, idle = np.asarray(joules, dtype=np.float64), np.asarray(idle_w, dtype=np.float64)
    devices = times.shape[1]
    if energy.shape != times.shape or idle.shape != (devices,) or devices > MAX_DEVICES:
        raise UsageError(f"joules and idle watts of {times.shape} stages and devices are needed")
    pipeline = _Pipeline(times, np.where(np.isfinite(times), energy, np.inf), idle)
    found = []
    for count in range(1, devices + 1):
        for on in itertools.combinations(range(devices), count):
            if np.isfinite(times[:, on]).any(axis=1).all():
                found.append(pipeline.descend(pipeline.start(np.array(on)), np.array(on)))
    return min((pipeline.steady(device) for device in found), key=lambda steady: steady.total_j)


@dataclass(frozen=True, slots=True, eq=False)
class _Pipeline:
    """Stages and devices, and what a mapping costs."""

    seconds: Floats
    joules: Floats
    idle_w: Floats

    def steady(self, device: Ints) -> Steady:
        """What a mapping comes to."""
        stages = np.arange(len(device))
        load = np.bincount(device, self.seconds[stages, device], len(self.idle_w))
        used = np.bincount(device, minlength=len(self.idle_w)) > 0
        period_s = float(load.max(initial=0.0))
        idle_j = float(((period_s - load) * self.idle_w)[used].sum())
        return Steady(device, period_s, float(self.joules[stages, device].sum()), idle_j)

    def start(self, on: Ints) -> Ints:
        """Every stage where it adds the least, were its device on anyway."""
        added = self.joules - np.where(np.isfinite(self.seconds), self.seconds, 0.0) * self.idle_w
        return np.asarray(on[np.argmin(added[:, on], axis=1)])

    def descend(self, device: Ints, on: Ints) -> Ints:
        """Move single stages and swap pairs as long as that is better."""
        best, least_j = device, self.steady(device).total_j
        better = True
        while better:
            better = False
            for changed in self._neighbours(best, on):
                total_j = self.steady(changed).total_j
                if total_j < least_j:
                    best, least_j, better = changed, total_j, True
        return best

    def _neighbours(self, device: Ints, on: Ints) -> list[Ints]:
        stages = range(len(device))
        moves = [
            _with(device, (stage,), (to,))
            for stage in stages
            for to in on
            if to != device[stage] and np.isfinite(self.seconds[stage, to])
        ]
        swaps = [
            _with(device, (a, b), (device[b], device[a]))
            for a, b in itertools.combinations(stages, 2)
            if device[a] != device[b]
            and np.isfinite(self.seconds[a, device[b]] + self.seconds[b, device[a]])
        ]
        return moves + swaps


def _with(device: Ints, stages: tuple[int, ...], to: tuple[int, ...]) -> Ints:
    changed = device.copy()
    changed[list(stages)] = to
    return changed
