"""One training step as a task graph, and the test of a trained network.

A mini-batch is cut into micro-batches. For each, a chain of tasks goes forward through the layers
and back; the chains are independent, so they run side by side. The gradients of a layer meet in a
tree of additions, at whose root one task moves the layer's weights:

    micro-batch 0   collect ─ conv ─ … ─ loss gradient ─ … ─ conv gradients ─┐
    micro-batch 1   collect ─ conv ─ … ─ loss gradient ─ … ─ conv gradients ─┴ axpy ─┐
    micro-batch 2   collect ─ conv ─ … ─ loss gradient ─ … ─ conv gradients ─┐       ├ axpy ─ sgd
    micro-batch 3   collect ─ conv ─ … ─ loss gradient ─ … ─ conv gradients ─┴ axpy ─┘

Nobody writes these edges down: they follow from what each task reads and writes. So the next
step's first layer starts when that layer's weights are moved, while others still wait for theirs.
The tree's shape depends on the number of micro-batches alone, and so does every bit of the result.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import legato_rt as lrt
from legato_rt.kernels.axpy import axpy
from legato_rt.kernels.collect import collect
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
    classes : array of int
        The images' classes.
    loss, losses : array
        Loss of each image, in the latest step and summed over steps.
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
        self.losses = np.zeros(size, np.float32)

    def forward(self) -> None:
        """Submit the tasks from images to scores."""
        for i, layer in enumerate(self.network.layers):
            layer.forward(self.x[i], self.y[i], self.network.weights.get(i))

    def backward(self, scale: float) -> None:
        """Submit the tasks from scores to gradients; add the losses to those of earlier steps."""
        scores = self.y[-1]
        softmax_cross_entropy_grad.submit(scores, self.classes, self.dy[-1], scale)
        for i in reversed(range(len(self.network.layers))):
            weights, gradients = self.network.weights.get(i), self.gradients.get(i)
            layer = self.network.layers[i]
            layer.backward(self.x[i], self.y[i], self.dy[i], self.dx[i], weights, gradients)
        softmax_cross_entropy.submit(scores, self.classes, self.loss)
        axpy.submit(1.0, self.loss, self.losses)


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
    replay : bool
        Capture the graph from images to gradients once, and run it again in every step.
    """

    def __init__(
        self,
        network: Network,
        data: Digits,
        rng: np.random.Generator,
        batch: int,
        micro_batches: int,
        replay: bool = False,
    ) -> None:
        self.network = network
        self.rng = rng
        self.batch = batch
        self.margined = digits.with_margin(data.images)
        self.classes = data.classes
        self.steps = len(data) // batch
        self.micro = [MicroBatch(network, batch // micro_batches) for _ in range(micro_batches)]
        self.graph: lrt.Captured | None = None
        if replay:
            with lrt.capture() as self.graph:
                self._gradients()

    def epoch(self, rates: npt.NDArray[np.float64]) -> float:
        """Train once on every image, step i at learning rate rates[i]; return the mean loss."""
        order = self.rng.permutation(len(self.classes))[: self.steps * self.batch]
        corners = self.rng.integers(0, 2 * SHIFT + 1, (len(order), 2))
        for i, rate in enumerate(rates):
            self.step(order, corners, i * self.batch, float(rate))
        return self.take_loss() / len(order)

    def step(self, order: Integers, corners: Integers, start: int, rate: float) -> None:
        """Submit one step on the images from `start` in order.

        Parameters
        ----------
        order : array of int, (N,)
        corners : array of int, (N, 2)
            How far each is moved: row and column of its first pixel, in images with a margin.
        start : int
        rate : float
            Learning rate.
        """
        for micro in self.micro:
            part = slice(start, start + len(micro.classes))
            start = part.stop
            collect.submit(
                self.margined, self.classes, order[part], corners[part],
                micro.images, micro.classes,
            )  # fmt: skip
        if self.graph is None:
            self._gradients()
        else:
            self.graph.run()
        for i in reversed(self.network.weights):
            weights, velocity = self.network.weights[i].all, self.network.velocity[i].all
            gradient = self.micro[0].gradients[i].all
            sgd.submit(weights, velocity, gradient, rate, MOMENTUM, DECAY)

    def _gradients(self) -> None:
        """Submit the tasks from images to gradients, whose sums the first micro-batch gets."""
        for micro in self.micro:
            micro.forward()
            micro.backward(1 / self.batch)
        for i in reversed(self.network.weights):
            submit_sum([micro.gradients[i].all for micro in self.micro])

    def take_loss(self) -> float:
        """Wait for the steps so far; return the sum of their losses, and count anew."""
        total = 0.0
        for micro in self.micro:
            lrt.wait(micro.losses)
            total += float(micro.losses.sum(dtype=np.float64))
            micro.losses[...] = 0
        return total


def submit_sum(parts: list[Floats]) -> None:
    """Submit a tree of additions, at whose end the first part holds the sum of all."""
    while len(parts) > 1:
        for total, part in zip(parts[::2], parts[1::2], strict=False):
            axpy.submit(1.0, part, total)
        parts = parts[::2]


def evaluate(network: Network, data: Digits, size: int) -> int:
    """Return how many of the images the network gets right, `size` of them a task chain."""
    parts = []
    for start in range(0, len(data), size):
        classes = data.classes[start : start + size]
        micro = MicroBatch(network, len(classes))
        micro.images[...] = data.images[start : start + size]
        micro.forward()
        parts.append((micro.y[-1], classes))
    lrt.wait([scores for scores, _ in parts])
    return sum(int((scores.argmax(axis=1) == classes).sum()) for scores, classes in parts)


def one_cycle(steps: int, peak: float) -> npt.NDArray[np.float64]:
    """Return learning rates that rise to `peak` over a tenth of the steps, then fall to 0."""
    done = np.arange(steps) / steps
    return peak * np.minimum(done / 0.1 + 1 / steps, 0.5 + 0.5 * np.cos(np.pi * done))
