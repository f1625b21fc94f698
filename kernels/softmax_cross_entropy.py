"""Cross entropy between a softmax over classes and the true class, and its gradient.

The loss of a sample with scores z and class k is log Σ exp(z) - z[k]; the largest score is taken
off first, so that no exponential overflows. Both are small beside the layers that make the
scores, so NumPy's passes are kept.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from legato_rt.access import In, Out
from legato_rt.kernels.device_network import (
    softmax_cross_entropy_device,
    softmax_cross_entropy_grad_device,
    with_classes,
)
from legato_rt.task import task

Array: TypeAlias = npt.NDArray[Any]


@task(flops=lambda scores, classes, loss: 4 * scores.size, rtol=1e-5)
def softmax_cross_entropy(scores: In[Array], classes: In[Array], loss: Out[Array]) -> None:
    """Write the loss of each sample into `loss`, in nats.

    Parameters
    ----------
    scores : array of float, (N, K)
    classes : array of int, (N,)
        The true class of each sample, 0 to K - 1.
    loss : array of float, (N,)
    """
    shifted = scores - scores.max(axis=1, keepdims=True)
    np.log(np.exp(shifted).sum(axis=1), out=loss)
    np.subtract(loss, shifted[np.arange(len(classes)), classes], out=loss)


@task(flops=lambda scores, classes, dscores, scale=1.0: 4 * scores.size, rtol=1e-5)
def softmax_cross_entropy_grad(
    scores: In[Array], classes: In[Array], dscores: Out[Array], scale: float = 1.0
) -> None:
    """Write the gradient of `scale` times the summed loss into `dscores`.

    Parameters
    ----------
    scores : array of float, (N, K)
    classes : array of int, (N,)
        The true class of each sample, 0 to K - 1.
    dscores : array of float, (N, K)
    scale : float
        1 / (samples in the batch) makes it the gradient of the mean loss.
    """
    np.subtract(scores, scores.max(axis=1, keepdims=True), out=dscores)
    np.exp(dscores, out=dscores)
    np.divide(dscores, dscores.sum(axis=1, keepdims=True), out=dscores)
    dscores[np.arange(len(classes)), classes] -= 1
    np.multiply(dscores, scale, out=dscores)


for _kind in ("opencl", "cuda"):
    softmax_cross_entropy.variant(_kind, when=with_classes)(softmax_cross_entropy_device)
    softmax_cross_entropy_grad.variant(_kind, when=with_classes)(softmax_cross_entropy_grad_device)
