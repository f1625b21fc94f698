"""Point 5: 36 vision kernels on a board with CPU, GPU and FPGA.

Measured is the energy of each kernel per frame on each device; the watts of the table turn it into
times.  As a pipeline in steady state every frame passes through all kernels, the device with the
most work sets the period, a device in use idles for the rest of it, and one that is not used is
off.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bench.evaluation import Row
from bench.schedule_data import frame_energy, watts
from legato_rt import order

UNITS = {"arm": "arm_a57", "gpu": "gpu_tx2", "fpga": "fpga_zcu102"}
ABOVE = 1.02
"""At most, times the sum of each kernel's least energy, which is 114.0 mJ."""

MJ = 1e3


def rows() -> list[Row]:
    """Energy per frame without and with idle, beside each device alone."""
    energy = frame_energy()
    joules = np.array([[of[device] for device in UNITS] for of in energy.values()])
    table = watts("vision_board")
    power = [table[unit, "nominal"] for unit in UNITS.values()]
    seconds = joules / [w.active_w for w in power]
    idle_w = np.array([w.idle_w for w in power])
    least = float(joules.min(axis=1).sum()) * MJ
    without = order.steady_state(seconds, joules, np.zeros(len(UNITS)))
    ignored = _with_idle(seconds, without, idle_w)
    counted = order.steady_state(seconds, joules, idle_w)
    alone = {d: float(joules[:, at].sum()) * MJ for at, d in enumerate(UNITS)}
    best = min(alone.values())
    mj = without.joules * MJ
    made = [Row("vision.without_idle", mj, "mJ/frame", ABOVE * least, baseline=least)]
    made += [Row(f"vision.{d}_alone", energy_mj, "mJ/frame") for d, energy_mj in alone.items()]
    made += [
        Row("vision.without_idle.idle_added", mj + ignored * MJ, "mJ/frame", baseline=best),
        Row("vision.with_idle", counted.total_j * MJ, "mJ/frame", baseline=best),
        Row("vision.with_idle.idle", counted.idle_j * MJ, "mJ/frame"),
        Row(
            "vision.with_idle.period", counted.period_s * MJ, "ms/frame", baseline=_fastest(seconds)
        ),
    ]
    counts = np.bincount(counted.device, minlength=len(UNITS))
    made += [
        Row(f"vision.with_idle.on_{d}", int(count), "kernels")
        for d, count in zip(UNITS, counts, strict=True)
    ]
    return made


def _with_idle(
    seconds: npt.NDArray[np.float64], steady: order.Steady, idle_w: npt.NDArray[np.float64]
) -> float:
    """What the devices in use draw while they idle."""
    load = np.bincount(steady.device, seconds[np.arange(len(seconds)), steady.device], len(idle_w))
    return float(((steady.period_s - load) * idle_w)[load > 0].sum())


def _fastest(seconds: npt.NDArray[np.float64]) -> float:
    """The period of the fastest device alone, in milliseconds."""
    return float(seconds.sum(axis=0).min()) * MJ
