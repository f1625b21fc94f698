"""Networks of layers; a layer submits its own forward and backward tasks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from legato_rt.kernels.conv2d import conv2d, conv2d_input_grad, conv2d_weight_grad
from legato_rt.kernels.dense import dense, dense_input_grad, dense_weight_grad
from legato_rt.kernels.maxpool import maxpool, maxpool_grad
from legato_rt.kernels.relu import relu, relu_grad

from .digits import CLASSES, SIDE

Floats = npt.NDArray[np.float32]
Shape = tuple[int, ...]


class Block:
    """Weights and biases of one layer, or their gradients: one array with two views of it.

    Attributes
    ----------
    all : array, (inputs + 1, outputs)
        The last row is `b`.
    w : array of the layer's own shape
    b : array, (outputs,)
    """

    def __init__(self, shape: Shape) -> None:
        self.all = np.zeros((math.prod(shape[:-1]) + 1, shape[-1]), np.float32)
        self.w = self.all[:-1].reshape(shape)
        self.b = self.all[-1]


class Layer:
    """What a network asks of its layers. Weights and gradients are None where there are none."""

    def build(self, shape: Shape) -> tuple[Shape, Shape | None]:
        """Take the shape of one input; return that of one output, and that of the weights."""
        raise NotImplementedError

    def view(self, x: Floats) -> Floats:
        """Return a batch of inputs in the shape in which the layer takes them."""
        return x

    def forward(self, x: Floats, y: Floats, weights: Any) -> None:
        """Submit what computes y from x."""
        raise NotImplementedError

    def backward(
        self, x: Floats, y: Floats, dy: Floats, dx: Floats | None, weights: Any, gradients: Any
    ) -> None:
        """Submit what computes dx (unless nobody needs it) and the gradients from dy."""
        raise NotImplementedError


class Conv(Layer):
    """Convolution with `outputs` filters of 3 × 3 that keeps the image's size."""

    def __init__(self, outputs: int) -> None:
        self.outputs = outputs

    def build(self, shape: Shape) -> tuple[Shape, Shape | None]:
        h, w, c = shape
        return (h, w, self.outputs), (3, 3, c, self.outputs)

    def forward(self, x: Floats, y: Floats, weights: Block) -> None:
        conv2d.submit(x, weights.w, weights.b, y, pad=1)

    def backward(
        self, x: Floats, y: Floats, dy: Floats, dx: Floats | None, weights: Block, gradients: Block
    ) -> None:
        if dx is not None:
            conv2d_input_grad.submit(dy, weights.w, dx, pad=1)
        conv2d_weight_grad.submit(x, dy, gradients.w, gradients.b, pad=1)


class Relu(Layer):
    """Zero in place of what is negative."""

    def build(self, shape: Shape) -> tuple[Shape, Shape | None]:
        return shape, None

    def forward(self, x: Floats, y: Floats, weights: None) -> None:
        relu.submit(x, y)

    def backward(
        self, x: Floats, y: Floats, dy: Floats, dx: Floats | None, weights: None, gradients: None
    ) -> None:
        relu_grad.submit(y, dy, dx)


class Pool(Layer):
    """Largest value of each 2 × 2 window."""

    def build(self, shape: Shape) -> tuple[Shape, Shape | None]:
        h, w, c = shape
        return (h // 2, w // 2, c), None

    def forward(self, x: Floats, y: Floats, weights: None) -> None:
        maxpool.submit(x, y)

    def backward(
        self, x: Floats, y: Floats, dy: Floats, dx: Floats | None, weights: None, gradients: None
    ) -> None:
        maxpool_grad.submit(x, dy, dx)


class Dense(Layer):
    """Fully connected layer; takes an image's pixels as one vector."""

    def __init__(self, outputs: int) -> None:
        self.outputs = outputs

    def build(self, shape: Shape) -> tuple[Shape, Shape | None]:
        return (self.outputs,), (math.prod(shape), self.outputs)

    def view(self, x: Floats) -> Floats:
        return x.reshape(len(x), -1)

    def forward(self, x: Floats, y: Floats, weights: Block) -> None:
        dense.submit(x, weights.w, weights.b, y)

    def backward(
        self, x: Floats, y: Floats, dy: Floats, dx: Floats | None, weights: Block, gradients: Block
    ) -> None:
        if dx is not None:
            dense_input_grad.submit(dy, weights.w, dx)
        dense_weight_grad.submit(x, dy, gradients.w, gradients.b)


NETWORKS: dict[str, tuple[Layer, ...]] = {
    "small": (Conv(16), Relu(), Conv(32), Relu(), Pool(), Dense(64), Relu(), Dense(CLASSES)),
    "large": (
        *(Conv(32), Relu(), Conv(64), Relu(), Pool()),
        *(Conv(128), Relu(), Conv(128), Relu(), Pool()),
        *(Dense(256), Relu(), Dense(CLASSES)),
    ),
}


class Network:
    """Layers, and the weights and momentum of those that learn.

    Parameters
    ----------
    name : str
        A key of `NETWORKS`.
    rng : numpy.random.Generator
        Draws the first weights: normal, variance 2 / inputs (He et al., 2015).

    Attributes
    ----------
    shapes : list of tuple of int
        Shape of one image, then of each layer's output for it.
    weights, velocity : dict of int to Block
        By the layer's place; a layer that does not learn has none.
    """

    def __init__(self, name: str, rng: np.random.Generator) -> None:
        self.layers = NETWORKS[name]
        self.shapes: list[Shape] = [(SIDE, SIDE, 1)]
        self.weights: dict[int, Block] = {}
        for i, layer in enumerate(self.layers):
            shape, weights = layer.build(self.shapes[-1])
            self.shapes.append(shape)
            if weights is not None:
                self.weights[i] = Block(weights)
        self.velocity = self.zeros()
        for block in self.weights.values():
            spread = math.sqrt(2 / (len(block.all) - 1))
            block.w[...] = rng.normal(0, spread, block.w.shape)

    def zeros(self) -> dict[int, Block]:
        """Return blocks like those of the weights, for velocities or gradients."""
        return {i: Block(block.w.shape) for i, block in self.weights.items()}

    @property
    def parameters(self) -> int:
        """Number of weights and biases."""
        return sum(block.all.size for block in self.weights.values())
