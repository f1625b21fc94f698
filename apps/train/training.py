"""One training step as a task graph, and the test of a trained network.

A mini-batch is cut into micro-batches. For each, a chain of tasks goes forward through the layers
and back; the chains are independent, so they run side by side. The gradients of a layer meet in a
tree of additions, at whose root one task moves the layer's weights:

    micro-batch 0   cut ─ conv ─ relu ─ … ─ loss gradient ─ … ─ conv gradients ─┐
    micro-batch 1   cut ─ conv ─ relu ─ … ─ loss gradient ─ … ─ conv gradients ─┴ add ─┐
    micro-batch 2   cut ─ conv ─ relu ─ … ─ loss gradient ─ … ─ conv gradients ─┐      ├ add ─ sgd
    micro-batch 3   cut ─ conv ─ relu ─ … ─ loss gradient ─ … ─ conv gradients ─┴ add ─┘

Nobody writes these edges down: they follow from what each task reads and writes. So the next
step's first layer starts when that layer's weights are moved, while others still wait for theirs.
The tree's shape depends on the number of micro-batches alone, and so does every bit of the result.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import legato_rt as lrt
from legato_rt import In, InOut, Out
from legato_rt.kernels.sgd import sgd
from legato_rt.kernels.softmax_cross_entropy import (
    softmax_cross_entropy,
    softmax_cross_entropy_grad,
)

from . import digits
from .digits import SHIFT, Digits, Floats, Integers
from .network import Network

MOMENTUM = 0.9
DECAY = 5e-4


@lrt.task
def cut(
    margined: In[Floats],
    classes: In[Integers],
    order: In[Integers],
    corners: In[Integers],
    start: int,
    images: Out[Floats],
    picked: Out[Integers],
) -> None:
    """Collect a micro-batch: the next images in order, each moved a little, and their classes."""
    part = slice(start, start + len(picked))
    digits.cut(margined, order[part], corners[part], images)
    picked[...] = classes[order[part]]


@lrt.task(flops=lambda total, part: total.size)
def add(total: InOut[Floats], part: In[Floats]) -> None:
    """Add one partial gradient to another."""
    total += part


@lrt.task
def summed(loss: In[Floats]) -> float:
    """Return the summed loss of a micro-batch."""
    return float(loss.sum(dtype=np.float64))


@lrt.task
def correct(scores: In[Floats], classes: In[Integers]) -> int:
    """Return how many images have their highest score at their own class."""
    return int(np.count_nonzero(scores.argmax(axis=1) == classes))


class MicroBatch:
    """The arrays that one micro-batch goes through, used again in every step.

    Attributes
    ----------
    x, dx : list of array
        What each layer takes, and the gradient with respect to it.
    y, dy : list of array
        What each layer puts out (the next takes a view of it), and the gradient.
    gradients : dict of int to Block
        Gradients with respect to the weights of each layer that learns.
    """

    def __init__(self, network: Network, size: int) -> None:
        self.network = network
        self.images, *self.y = (np.zeros((size, *s), np.float32) for s in network.shapes)
        self.dy = [np.zeros_like(y) for y in self.y]
        inputs, slopes = [self.images, *self.y], [None, *self.dy]
        self.x = [layer.view(x) for layer, x in zip(network.layers, inputs, strict=False)]
        self.dx = [
            None if dx is None else layer.view(dx)
            for layer, dx in zip(network.layers, slopes, strict=False)
        ]
        self.gradients = network.zeros()
        self.classes: Integers = np.zeros(size, np.intp)
        self.loss = np.zeros(size, np.float32)

    def forward(self) -> None:
        """Submit the tasks from images to scores."""
        for i, layer in enumerate(self.network.layers):
            layer.forward(self.x[i], self.y[i], self.network.weights.get(i))

    def backward(self, scale: float) -> lrt.Future[float]:
        """Submit the tasks from scores to gradients; return the summed loss to come."""
        scores = self.y[-1]
        softmax_cross_entropy_grad.submit(scores, self.classes, self.dy[-1], scale)
        for i in reversed(range(len(self.network.layers))):
            weights, gradients = self.network.weights.get(i), self.gradients.get(i)
            layer = self.network.layers[i]
            layer.backward(self.x[i], self.y[i], self.dy[i], self.dx[i], weights, gradients)
        softmax_cross_entropy.submit(scores, self.classes, self.loss)
        return summed.submit(self.loss)


class Trainer:
    """Trains a network on digits, in mini-batches.

    Parameters
    ----------
    network : Network
    data : Digits
    rng : numpy.random.Generator
        Draws the order of the images and how far each is moved.
    batch : int
        Images in a mini-batch. What is left over at the end of an epoch sits that epoch out.
    micro_batches : int
        Into how many equal parts a mini-batch is cut.
    """

    def __init__(
        self,
        network: Network,
        data: Digits,
        rng: np.random.Generator,
        batch: int,
        micro_batches: int,
    ) -> None:
        self.network = network
        self.rng = rng
        self.batch = batch
        self.margined = digits.with_margin(data.images)
        self.classes = data.classes
        self.steps = len(data) // batch
        self.micro = [MicroBatch(network, batch // micro_batches) for _ in range(micro_batches)]

    def epoch(self, rates: npt.NDArray[np.float64]) -> float:
        """Train once on every image, step i at learning rate rates[i]; return the mean loss."""
        order = self.rng.permutation(len(self.classes))[: self.steps * self.batch]
        corners = self.rng.integers(0, 2 * SHIFT + 1, (len(order), 2))
        losses: list[lrt.Future[float]] = []
        for i, rate in enumerate(rates):
            losses += self.step(order, corners, i * self.batch, float(rate))
        return sum(loss.result() for loss in losses) / len(order)

    def step(
        self, order: Integers, corners: Integers, start: int, rate: float
    ) -> list[lrt.Future[float]]:
        """Submit one step on the images from `start` in order; return losses to come.

        Parameters
        ----------
        order : array of int, (N,)
        corners : array of int, (N, 2)
            How far each is moved, as for `digits.cut`.
        start : int
        rate : float
            Learning rate.
        """
        losses = []
        for micro in self.micro:
            images, picked = micro.images, micro.classes
            cut.submit(self.margined, self.classes, order, corners, start, images, picked)
            start += len(picked)
            micro.forward()
            losses.append(micro.backward(1 / self.batch))
        for i in reversed(self.network.weights):
            gradient = reduced([micro.gradients[i].all for micro in self.micro])
            weights, velocity = self.network.weights[i].all, self.network.velocity[i].all
            sgd.submit(weights, velocity, gradient, rate, MOMENTUM, DECAY)
        return losses


def reduced(parts: list[Floats]) -> Floats:
    """Submit a tree of additions; return the part that comes to hold the sum of all."""
    while len(parts) > 1:
        for total, part in zip(parts[::2], parts[1::2], strict=False):
            add.submit(total, part)
        parts = parts[::2]
    return parts[0]


def evaluate(network: Network, data: Digits, size: int) -> int:
    """Return how many of the images the network gets right, `size` of them a task chain."""
    hits = []
    for start in range(0, len(data), size):
        classes = data.classes[start : start + size]
        micro = MicroBatch(network, len(classes))
        micro.images[...] = data.images[start : start + size]
        micro.forward()
        hits.append(correct.submit(micro.y[-1], classes))
    return sum(hit.result() for hit in hits)


def one_cycle(steps: int, peak: float) -> npt.NDArray[np.float64]:
    """Return learning rates that rise to `peak` over a tenth of the steps, then fall to 0."""
    done = np.arange(steps) / steps
    return peak * np.minimum(done / 0.1 + 1 / steps, 0.5 + 0.5 * np.cos(np.pi * done))
