"""Stochastic gradient descent with momentum, one step in place."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy.typing as npt

from legato_rt.access import In, InOut
from legato_rt.kernels.device_network import sgd_device
from legato_rt.kernels.device_source import leading
from legato_rt.kernels.jit import lazy_njit
from legato_rt.task import task

Array: TypeAlias = npt.NDArray[Any]


@task(flops=lambda weights, *rest: 6 * weights.size, rtol=1e-5)
def sgd(
    weights: InOut[Array],
    velocity: InOut[Array],
    gradient: In[Array],
    rate: float,
    momentum: float = 0.9,
    decay: float = 0.0,
) -> None:
    """Move `weights` by one step, in place.

    velocity ← momentum·velocity + gradient + decay·weights, then weights ← weights - rate·velocity.

    Parameters
    ----------
    weights, velocity, gradient : array of float, of one shape
    rate : float
        Learning rate.
    momentum : float
        The part of the velocity that is kept.
    decay : float
        Weight decay: pulls every weight towards zero.
    """
    velocity *= momentum
    velocity += gradient + decay * weights
    weights -= rate * velocity


def _contiguous(weights: Array, velocity: Array, gradient: Array, *_: float) -> bool:
    return (
        weights.flags.c_contiguous and velocity.flags.c_contiguous and gradient.flags.c_contiguous
    )


@sgd.variant("cpu", when=_contiguous)
def sgd_numba(
    weights: Array,
    velocity: Array,
    gradient: Array,
    rate: float,
    momentum: float = 0.9,
    decay: float = 0.0,
) -> None:
    """Update both arrays in one pass, in the precision of `weights`."""
    real = weights.dtype.type
    _sgd(
        weights.reshape(-1),
        velocity.reshape(-1),
        gradient.reshape(-1),
        real(rate),
        real(momentum),
        real(decay),
    )


@lazy_njit
def _sgd(
    weights: Array, velocity: Array, gradient: Array, rate: float, momentum: float, decay: float
) -> None:
    if weights.size != velocity.size or weights.size != gradient.size:
        raise ValueError("weights, velocity and gradient must have one shape")
    for i in range(weights.size):
        v = momentum * velocity[i] + gradient[i] + decay * weights[i]
        velocity[i] = v
        weights[i] -= rate * v


for _kind in ("opencl", "cuda"):
    sgd.variant(_kind, when=leading(3))(sgd_device)
