"""The kernels of linear algebra: in place on views, every variant against the reference."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import legato_rt as lrt
from legato_rt.kernels import blas
from legato_rt.kernels.gemm import gemm
from legato_rt.kernels.potrf import potrf
from legato_rt.kernels.syrk import syrk
from legato_rt.kernels.trsm import trsm

Array = npt.NDArray[Any]
DTYPES = [np.float32, np.float64]
FRAME = 7.0

needs_scipy = pytest.mark.skipif(not blas.AVAILABLE, reason="SciPy is not installed")


def bodies(task: Any) -> list[Callable[..., None]]:
    return [variant.function for variant in task.variants if variant.kind == "cpu"]


def framed(values: Array) -> Array:
    """Return a view with these values inside a larger array, as a tile is."""
    rows, columns = values.shape
    whole = np.full((rows + 3, columns + 5), FRAME, values.dtype)
    view = whole[2 : 2 + rows, 1 : 1 + columns]
    view[...] = values
    return view


def outside(view: Array) -> Array:
    """Return a copy of the larger array with the view's own elements blanked."""
    assert isinstance(view.base, np.ndarray)
    whole = view.base.copy()
    whole[2 : 2 + view.shape[0], 1 : 1 + view.shape[1]] = FRAME
    return whole


def normal(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def positive_definite(size: int, dtype: Any) -> Array:
    x = normal((size, size), np.float64, 5)
    made: Array = (x @ x.T + size * np.eye(size)).astype(dtype)
    return made


def assert_close(got: Array, expected: Array) -> None:
    scale = float(np.abs(expected).max(initial=1.0))
    rtol = 1e-5 if got.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(got, expected, rtol=0, atol=scale * rtol)


def assert_frame(view: Array) -> None:
    assert (outside(view) == FRAME).all()


@pytest.mark.parametrize("body", bodies(gemm))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("flags", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("sizes", [(5, 3, 4), (1, 1, 1), (8, 8, 8), (0, 3, 2), (3, 0, 2)])
def test_gemm(body: Any, dtype: Any, flags: tuple[bool, bool], sizes: Any) -> None:
    m, k, n = sizes
    a, b, c = normal((m, k), dtype, 1), normal((k, n), dtype, 2), normal((m, n), dtype, 3)
    expected = c - 0.5 * (a.astype(np.float64) @ b)
    views = [framed(x.T if flag else x) for x, flag in zip((a, b), flags, strict=True)]
    out = framed(c)
    body(*views, out, -0.5, *flags)
    assert out.dtype == dtype
    assert_close(out, expected.astype(dtype))
    for view in (*views, out):
        assert_frame(view)


@pytest.mark.parametrize("body", bodies(syrk))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", [(5, 3), (1, 1), (8, 16), (4, 0), (0, 4)])
def test_syrk(body: Any, dtype: Any, sizes: tuple[int, int]) -> None:
    a, c = normal(sizes, dtype, 1), normal((sizes[0], sizes[0]), dtype, 2)
    expected = np.where(np.tri(sizes[0], dtype=np.bool_), c - a.astype(np.float64) @ a.T, c)
    view, out = framed(a), framed(c)
    body(view, out, -1.0)
    assert_close(out, expected.astype(dtype))
    assert_frame(out)


@pytest.mark.parametrize("body", bodies(trsm))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", [(5, 3), (1, 1), (4, 8), (0, 3), (3, 0)])
def test_trsm(body: Any, dtype: Any, sizes: tuple[int, int]) -> None:
    rows, size = sizes
    lower = np.tril(normal((size, size), dtype, 1)) + 4 * np.eye(size, dtype=dtype)
    x = normal((rows, size), dtype, 2)
    triangle = framed(lower + np.triu(np.full_like(lower, np.nan), 1))
    out = framed((x @ lower.T).astype(dtype))
    body(triangle, out)
    assert_close(out, x)
    assert_frame(out)


@pytest.mark.parametrize("body", bodies(potrf))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 2, 7, 33])
def test_potrf(body: Any, dtype: Any, size: int) -> None:
    a = positive_definite(size, dtype)
    above = np.triu(np.full_like(a, FRAME), 1)
    out = framed(np.tril(a) + above)
    body(out)
    assert_close(np.tril(out), np.linalg.cholesky(a.astype(np.float64)).astype(dtype))
    assert (np.triu(out, 1) == above).all()
    assert_frame(out)


@pytest.mark.parametrize("body", bodies(potrf))
def test_potrf_refuses_what_is_not_positive_definite(body: Any) -> None:
    a = positive_definite(5, np.float64)
    a[3, 3] = -1.0
    with pytest.raises(np.linalg.LinAlgError, match="ositive definite"):
        body(a)


@pytest.mark.parametrize(
    ("task", "shapes"),
    [
        (gemm, [(2, 3), (4, 2), (2, 2)]),
        (gemm, [(2, 3), (3, 2), (2, 1)]),
        (syrk, [(2, 3), (3, 3)]),
        (trsm, [(2, 2), (2, 3)]),
        (trsm, [(2, 3), (4, 3)]),
        (potrf, [(2, 3)]),
    ],
)
def test_shapes_that_do_not_fit_are_refused(task: Any, shapes: list[tuple[int, int]]) -> None:
    for body in bodies(task):
        arrays = [np.ones(shape) for shape in shapes]
        with pytest.raises(ValueError, match=r"fit|shape|matmul"):
            body(*arrays)
        assert all((x == 1).all() for x in arrays)


@needs_scipy
@pytest.mark.parametrize("task", [gemm, syrk, trsm, potrf])
def test_a_read_only_output_is_refused(task: Any) -> None:
    out = positive_definite(3, np.float64)
    out.flags.writeable = False
    arguments = [np.eye(3)] * (len(task.signature.modes) - 1 if task is not gemm else 2)
    arguments = arguments[:1] if task is syrk else arguments
    for body in bodies(task):
        with pytest.raises(ValueError, match="read-only"):
            body(*arguments, out)


def unfit() -> dict[str, Array]:
    """Return arrays that BLAS cannot work on as they lie in memory."""
    whole = np.ones((8, 8))
    return {
        "columns": np.asfortranarray(np.ones((4, 4))),
        "every other column": whole[:4, ::2],
        "backwards": whole[:4, :4][::-1],
        "rows upon each other": np.lib.stride_tricks.as_strided(whole, (4, 4), (8, 8)),
        "whole numbers": np.ones((4, 4), np.int64),
        "foreign byte order": np.ones((4, 4), ">f8"),
        "unaligned": np.frombuffer(bytearray(129), np.float64, 16, 1).reshape(4, 4),
        "vector": np.ones(4),
    }


@pytest.mark.parametrize("what", unfit())
def test_what_blas_cannot_take_does_not_fit(what: str) -> None:
    assert not blas.fits(unfit()[what])
    assert not blas.fits(np.ones((4, 4)), unfit()[what])


@needs_scipy
@pytest.mark.parametrize("what", unfit())
def test_blas_refuses_what_does_not_fit(what: str) -> None:
    with pytest.raises(ValueError, match="BLAS wants float64 in rows"):
        blas.matrix(unfit()[what], np.dtype(np.float64))


@pytest.mark.parametrize("what", ["columns", "every other column", "backwards", "unaligned"])
def test_the_runtime_takes_the_reference_where_blas_cannot(what: str) -> None:
    c = unfit()[what]
    expected = c + np.ones((4, 4)) @ np.ones((4, 4))
    with lrt.Runtime(workers=1, devices="cpu", executor="serial", trace=True) as rt:
        gemm.submit(np.ones((4, 4)), np.ones((4, 4)), c)
    assert (c == expected).all()
    assert rt.trace[0].variant == "gemm"


@needs_scipy
def test_the_runtime_takes_blas_where_it_can() -> None:
    c = np.zeros((8, 8))
    with lrt.Runtime(workers=1, devices="cpu", executor="serial", trace=True) as rt:
        for tile in lrt.tiles(c, 4).flat:
            gemm.submit(np.eye(4), np.ones((4, 4)), tile, alpha=2.0, transpose_b=True)
    assert (c == 2).all()
    assert {record.variant for record in rt.trace} == {"gemm_blas"}


def test_flops() -> None:
    def flops(task: Any, *args: Any, **kwargs: Any) -> float:
        return float(task.flops(*args, **kwargs))

    a, b, c = np.ones((2, 3)), np.ones((3, 5)), np.ones((2, 5))
    assert flops(gemm, a, b, c) == flops(gemm, a.T, b, c, 1.0, True) == 60
    assert flops(gemm, a.T, b.T, c, transpose_a=True, transpose_b=True) == 60
    assert flops(syrk, a, np.ones((2, 2)), alpha=-1.0) == 18
    assert flops(trsm, np.eye(5), c) == 50
    assert flops(potrf, np.eye(6)) == 72


def test_without_scipy_the_reference_is_left() -> None:
    code = """
import sys
sys.modules["scipy"] = None
import numpy as np
from legato_rt.kernels.gemm import gemm
from legato_rt.kernels.potrf import potrf
from legato_rt.kernels.syrk import syrk
from legato_rt.kernels.trsm import trsm
kinds = [[v.kind for v in t.variants].count("cpu") for t in (gemm, potrf, syrk, trsm)]
assert kinds == [1, 1, 1, 1]
a = 4 * np.eye(2)
potrf(a)
assert (a == 2 * np.eye(2)).all()
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
