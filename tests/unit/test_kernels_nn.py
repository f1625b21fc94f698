"""The network kernels: every variant against the reference, every gradient against differences."""

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legato_rt.kernels import conv2d as conv2d_module
from legato_rt.kernels.conv2d import conv2d, conv2d_input_grad, conv2d_weight_grad, output_side
from legato_rt.kernels.dense import dense, dense_input_grad, dense_weight_grad
from legato_rt.kernels.maxpool import maxpool, maxpool_grad
from legato_rt.kernels.relu import relu, relu_grad
from legato_rt.kernels.sgd import sgd
from legato_rt.kernels.softmax_cross_entropy import (
    softmax_cross_entropy,
    softmax_cross_entropy_grad,
)
from tests.helpers.kernels import Array, arrays, assert_close, differences, stale, variants

DTYPES = [np.float32, np.float64]

# (N, H, W, C), (KH, KW, O), pad, stride
GEOMETRIES = [
    ((5, 8, 8, 1), (3, 3, 16), 1, 1),
    ((2, 8, 8, 16), (3, 3, 8), 1, 1),
    ((3, 7, 6, 4), (3, 2, 2), 1, 2),
    ((2, 5, 5, 3), (2, 3, 5), 0, 1),
    ((4, 9, 9, 2), (5, 3, 2), 2, 3),
    ((1, 1, 1, 1), (1, 1, 1), 0, 1),
    ((2, 4, 4, 3), (2, 2, 2), 3, 1),  # padded by more than a filter's side
    ((0, 4, 4, 2), (3, 3, 3), 1, 1),  # no image
    ((2, 3, 3, 2), (3, 3, 4), 0, 1),  # one output pixel
]


def conv_case(
    images: tuple[int, int, int, int],
    filters: tuple[int, int, int],
    pad: int,
    stride: int,
    dtype: Any,
) -> tuple[Array, Array, Array, Array]:
    (n, h, w, c), (kh, kw, o) = images, filters
    output = (n, output_side(h, kh, pad, stride), output_side(w, kw, pad, stride), o)
    x, w_, b, dy = arrays(1, dtype, images, (kh, kw, c, o), (o,), output)
    return x, w_, b, dy


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("images", "filters", "pad", "stride"), GEOMETRIES)
def test_conv2d_variants_agree(
    images: Any, filters: Any, pad: int, stride: int, dtype: Any
) -> None:
    x, w, b, dy = conv_case(images, filters, pad, stride, dtype)
    calls: list[tuple[Any, list[Array], list[Array]]] = [
        (conv2d, [x, w, b], [dy]),
        (conv2d_input_grad, [dy, w], [x]),
        (conv2d_weight_grad, [x, dy], [w, b]),
    ]
    for task, inputs, likes in calls:
        expected = stale(*likes)
        task(*inputs, *expected, pad, stride)
        for variant in variants(task, *inputs, *expected, pad, stride):
            got = stale(*likes)
            variant(*inputs, *got, pad, stride)
            for one, other in zip(got, expected, strict=True):
                assert_close(one, other)


@given(data=st.data())
@settings(max_examples=60)
def test_conv2d_agrees_with_its_definition(data: st.DataObject) -> None:
    n, c, o, kh, kw = (data.draw(st.integers(1, 3)) for _ in range(5))
    pad, stride = data.draw(st.integers(0, 3)), data.draw(st.integers(1, 3))
    h = data.draw(st.integers(max(1, kh - 2 * pad), 6))
    width = data.draw(st.integers(max(1, kw - 2 * pad), 6))
    x, w, b, y = conv_case((n, h, width, c), (kh, kw, o), pad, stride, np.float64)
    padded = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    expected = np.empty_like(y)
    for p, q in np.ndindex(y.shape[1:3]):
        patch = padded[:, p * stride : p * stride + kh, q * stride : q * stride + kw]
        expected[:, p, q] = np.einsum("nuvc,uvco->no", patch, w) + b
    for f in [conv2d, *variants(conv2d, x, w, b, y, pad, stride)]:
        y.fill(np.nan)
        f(x, w, b, y, pad, stride)
        assert_close(y, expected)


@pytest.mark.parametrize(("images", "filters", "pad", "stride"), GEOMETRIES[2:7])
def test_conv2d_gradients(images: Any, filters: Any, pad: int, stride: int) -> None:
    x, w, b, dy = conv_case(images, filters, pad, stride, np.float64)
    y = np.empty_like(dy)

    def value() -> float:
        conv2d(x, w, b, y, pad, stride)
        return float((y * dy).sum())

    dx, dw, db = stale(x, w, b)
    conv2d_input_grad(dy, w, dx, pad, stride)
    conv2d_weight_grad(x, dy, dw, db, pad, stride)
    for got, variable in ((dx, x), (dw, w), (db, b)):
        np.testing.assert_allclose(got, differences(value, variable), atol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_conv2d_in_blocks(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of one, of some and of all images give the same; the last may be smaller."""
    x, w, b, dy = conv_case((7, 6, 6, 4), (3, 3, 5), 1, 1, dtype)
    expected = stale(dy, x, w, b)
    conv2d(x, w, b, expected[0], 1)
    conv2d_input_grad(dy, w, expected[1], 1)
    conv2d_weight_grad(x, dy, expected[2], expected[3], 1)
    for block_bytes in (1, 3 * 36 * 37 * x.itemsize, 1 << 30):
        monkeypatch.setattr(conv2d_module, "BLOCK_BYTES", block_bytes)
        y, dx, dw, db = got = stale(dy, x, w, b)
        conv2d_module.conv2d_lowered(x, w, b, y, 1)
        conv2d_module.conv2d_input_grad_lowered(dy, w, dx, 1)
        conv2d_module.conv2d_weight_grad_lowered(x, dy, dw, db, 1)
        for one, other in zip(got, expected, strict=True):
            assert_close(one, other)


def test_conv2d_workspaces_do_not_mix() -> None:
    """Two pads that lead to one padded shape: what one writes is margin to the other."""
    for _ in range(2):
        for side, pad in ((6, 1), (4, 2), (8, 0)):
            x, w, b, expected = conv_case((2, side, side, 3), (3, 3, 2), pad, 1, np.float32)
            (y,) = stale(expected)
            conv2d(x, w, b, expected, pad)
            conv2d_module.conv2d_lowered(x, w, b, y, pad)
            assert_close(y, expected)


def test_conv2d_takes_strided_arrays() -> None:
    x, w, b, dy = conv_case((4, 6, 6, 4), (3, 3, 4), 1, 1, np.float64)
    wide = np.zeros((4, 6, 6, 8))
    strided = wide[..., ::2]
    strided[...] = x
    on_cpu = [variant for variant in conv2d.variants[1:] if variant.kind == "cpu"]
    assert not any(variant.when(strided, w, b, dy, 1) for variant in on_cpu)
    (y,) = stale(dy)
    conv2d(strided, w, b, y, 1)
    conv2d(x, w, b, dy, 1)
    assert_close(y, dy)


def test_conv2d_refuses_shapes_that_do_not_fit() -> None:
    x, w, b, y = conv_case((2, 6, 6, 3), (3, 3, 4), 1, 1, np.float32)
    for f in [conv2d, conv2d_module.conv2d_lowered]:
        for wrong in (y[:1].copy(), y[:, 1:].copy(), y[..., 1:].copy()):
            with pytest.raises(ValueError, match="do not give"):
                f(x, w, b, wrong, 1)
        with pytest.raises(ValueError, match="do not give"):
            f(x[..., 1:].copy(), w, b, y, 1)
    for f in [conv2d_input_grad, conv2d_module.conv2d_input_grad_lowered]:
        with pytest.raises(ValueError, match="do not give"):
            f(y[:1].copy(), w, x, 1)
    for f in [conv2d_weight_grad, conv2d_module.conv2d_weight_grad_lowered]:
        with pytest.raises(ValueError, match="do not give"):
            f(x[:1].copy(), y, w, b, 1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (5, 4, 3, 2)])
def test_relu(shape: tuple[int, ...], dtype: Any) -> None:
    x, dy = arrays(2, dtype, shape, shape)
    y, dx = stale(x, x)
    relu(x, y)
    np.testing.assert_array_equal(y, np.where(x > 0, x, 0))
    for f in [relu_grad, *variants(relu_grad, y, dy, dx)]:
        f(y, dy, dx)
        np.testing.assert_array_equal(dx, np.where(x > 0, dy, 0))


def test_relu_keeps_nan() -> None:
    x = np.array([np.nan, -np.inf, -0.0, 0.0, np.inf], np.float32)
    y, dx = stale(x, x)
    relu(x, y)
    np.testing.assert_array_equal(y, [np.nan, 0, 0, 0, np.inf])
    for f in [relu_grad, *variants(relu_grad, y, x, dx)]:
        f(y, np.ones_like(x), dx)
        np.testing.assert_array_equal(dx, [0, 0, 0, 0, 1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "size"),
    [((2, 8, 8, 5), 2), ((3, 7, 5, 2), 2), ((1, 9, 9, 1), 3), ((0, 4, 4, 1), 2), ((1, 2, 2, 3), 1)],
)
def test_maxpool_variants_agree(shape: tuple[int, ...], size: int, dtype: Any) -> None:
    """Few distinct values, so that windows have several largest; here and there a NaN."""
    rng = np.random.default_rng(3)
    x = rng.integers(0, 3, shape).astype(dtype)
    x[rng.random(shape) < 0.05] = np.nan
    n, h, w, c = shape
    (dy,) = arrays(4, dtype, (n, h // size, w // size, c))
    y, dx = stale(dy, x)
    maxpool(x, y, size)
    maxpool_grad(x, dy, dx, size)
    for p, q in np.ndindex(y.shape[1:3]):
        window = x[:, p * size : (p + 1) * size, q * size : (q + 1) * size]
        np.testing.assert_array_equal(y[:, p, q], window.max(axis=(1, 2)))
    for variant in variants(maxpool, x, y, size):
        (got,) = stale(y)
        variant(x, got, size)
        np.testing.assert_array_equal(got, y)
    for variant in variants(maxpool_grad, x, dy, dx, size):
        (got,) = stale(x)
        variant(x, dy, got, size)
        np.testing.assert_array_equal(got, dx)


def test_maxpool_gradient() -> None:
    x, dy = arrays(5, np.float64, (2, 5, 4, 2), (2, 2, 2, 2))
    y, dx = stale(dy, x)

    def value() -> float:
        maxpool(x, y)
        return float((y * dy).sum())

    maxpool_grad(x, dy, dx)
    np.testing.assert_allclose(dx, differences(value, x), atol=1e-6)


def test_maxpool_gradient_of_equals_goes_to_the_first() -> None:
    x, dy = np.ones((1, 2, 2, 1), np.float32), np.full((1, 1, 1, 1), 3, np.float32)
    dx = np.full_like(x, np.nan)
    for f in [maxpool_grad, *variants(maxpool_grad, x, dy, dx)]:
        f(x, dy, dx)
        np.testing.assert_array_equal(dx.ravel(), [3, 0, 0, 0])


def test_compiled_loops_refuse_shapes_that_do_not_fit() -> None:
    x, y = arrays(6, np.float32, (2, 4, 4, 3), (2, 2, 2, 3))
    dx = np.empty_like(x)
    for variant in variants(maxpool, x, y):
        with pytest.raises(ValueError, match="shape"):
            variant(x[:1].copy(), y)
    for variant in variants(maxpool_grad, x, y, dx):
        with pytest.raises(ValueError, match="shape"):
            variant(x, y[:1].copy(), dx)
        with pytest.raises(ValueError, match="shape"):
            variant(x, y, dx[:1].copy())
    for variant in variants(relu_grad, x, x, dx):
        with pytest.raises(ValueError, match="shape"):
            variant(x, x[:1].copy(), dx)
    for variant in variants(sgd, x, dx, x, 0.1):
        with pytest.raises(ValueError, match="shape"):
            variant(x, dx, x[:1].copy(), 0.1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "k", "o"), [(4, 7, 3), (1, 1, 1), (0, 5, 2)])
def test_dense(n: int, k: int, o: int, dtype: Any) -> None:
    x, w, b, dy = arrays(7, dtype, (n, k), (k, o), (o,), (n, o))
    y, dx, dw, db = stale(dy, x, w, b)
    dense(x, w, b, y)
    dense_input_grad(dy, w, dx)
    dense_weight_grad(x, dy, dw, db)
    assert_close(y, x @ w + b)
    assert_close(dx, dy @ w.T)
    assert_close(dw, x.T @ dy)
    assert_close(db, dy.sum(axis=0))


def test_dense_gradients() -> None:
    x, w, b, dy = arrays(8, np.float64, (3, 4), (4, 5), (5,), (3, 5))
    y, dx, dw, db = stale(dy, x, w, b)

    def value() -> float:
        dense(x, w, b, y)
        return float((y * dy).sum())

    dense_input_grad(dy, w, dx)
    dense_weight_grad(x, dy, dw, db)
    for got, variable in ((dx, x), (dw, w), (db, b)):
        np.testing.assert_allclose(got, differences(value, variable), atol=1e-6)


def test_softmax_cross_entropy() -> None:
    scores, (classes, scale) = arrays(9, np.float64, (4, 3))[0], (np.array([0, 2, 1, 2]), 0.25)
    loss, slope = stale(scores[:, 0], scores)
    softmax_cross_entropy(scores, classes, loss)
    exponents = np.exp(scores)
    likelihood = exponents[np.arange(4), classes] / exponents.sum(axis=1)
    np.testing.assert_allclose(loss, -np.log(likelihood), rtol=1e-12)

    def value() -> float:
        out = np.empty(4)
        softmax_cross_entropy(scores, classes, out)
        return scale * float(out.sum())

    softmax_cross_entropy_grad(scores, classes, slope, scale)
    np.testing.assert_allclose(slope, differences(value, scores), atol=1e-8)


@pytest.mark.parametrize("dtype", DTYPES)
def test_softmax_cross_entropy_of_large_scores(dtype: Any) -> None:
    scores = np.array([[1e4, 0, -1e4], [-1e4, -1e4, -1e4]], dtype)
    classes = np.array([1, 2])
    loss, slope = stale(scores[:, 0], scores)
    softmax_cross_entropy(scores, classes, loss)
    softmax_cross_entropy_grad(scores, classes, slope)
    np.testing.assert_allclose(loss, [1e4, np.log(3)], rtol=1e-6)
    np.testing.assert_allclose(slope, [[1, -1, 0], [1 / 3, 1 / 3, -2 / 3]], rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("decay", [0.0, 0.01])
@pytest.mark.parametrize("shape", [(5,), (4, 3), (0,)])
def test_sgd(shape: tuple[int, ...], decay: float, dtype: Any) -> None:
    start = arrays(10, dtype, shape, shape, shape)
    states = []
    for f in [sgd, *variants(sgd, *start, 0.1)]:
        weights, velocity, gradient = (a.copy() for a in start)
        for _ in range(3):
            f(weights, velocity, gradient, 0.1, 0.5, decay)
        states.append((weights, velocity))
    weights, velocity, gradient = (a.astype(np.float64) for a in start)
    for _ in range(3):
        velocity = 0.5 * velocity + gradient + decay * weights
        weights = weights - 0.1 * velocity
    for got_weights, got_velocity in states:
        assert_close(got_weights, weights.astype(dtype))
        assert_close(got_velocity, velocity.astype(dtype))


def test_variants_take_read_only_inputs() -> None:
    x, w, b, dy = conv_case((2, 4, 4, 3), (3, 3, 5), 1, 1, np.float32)
    pooled = x[:, ::2, ::2].copy()
    for array in (x, w, b, dy, pooled):
        array.flags.writeable = False
    calls: list[tuple[Any, list[Array], list[Array]]] = [
        (conv2d, [x, w, b], [dy]),
        (conv2d_input_grad, [dy, w], [x]),
        (conv2d_weight_grad, [x, dy], [w, b]),
        (maxpool, [x], [pooled]),
        (maxpool_grad, [x, pooled], [x]),
        (relu_grad, [x, x], [x]),
    ]
    for task, inputs, likes in calls:
        outputs = stale(*likes)
        extra = [1] if task.name.startswith("conv") else []
        for variant in variants(task, *inputs, *outputs, *extra):
            variant(*inputs, *outputs, *extra)
            assert not any(np.isnan(output).any() for output in outputs)


def test_same_bits_on_every_thread() -> None:
    x, w, b, dy = conv_case((9, 8, 8, 16), (3, 3, 32), 1, 1, np.float32)
    results: list[list[bytes]] = []

    def work() -> None:
        y, dx, dw, db = outputs = stale(dy, x, w, b)
        conv2d_module.conv2d_lowered(x, w, b, y, 1)
        conv2d_module.conv2d_input_grad_lowered(dy, w, dx, 1)
        conv2d_module.conv2d_weight_grad_lowered(x, dy, dw, db, 1)
        results.append([output.tobytes() for output in outputs])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert all(result == results[0] for result in results)
