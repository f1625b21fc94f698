"""Texts and options of device kernels, and what device variants refuse before they launch any."""

from typing import Any

import numpy as np
import pytest

from legato_rt.kernels import device_factors, device_network, device_products
from legato_rt.kernels.device_source import SOURCES, Source, has_numba_cuda, leading, one_precision
from legato_rt.kernels.samples import SAMPLES


@pytest.mark.parametrize("kind", ["opencl", "cuda"])
@pytest.mark.parametrize("name", SOURCES)
def test_text_begins_with_the_prelude_of_its_kind(name: str, kind: str) -> None:
    text = SOURCES[name].text(kind)
    assert text.count("typedef double wide") == 1
    assert ("blockIdx" in text) == (kind == "cuda")
    assert "__kernel void" in text


def test_options() -> None:
    source = Source("axpy", lanes=32, SIDE=4, KIND="int")
    try:
        assert source.options("opencl", np.float32) == (
            "-cl-std=CL1.2", "-DKIND=int", "-DLANES=32", "-DSIDE=4", "-Dreal=float",
        )  # fmt: skip
        changed = source.options("cuda", "f8", LANES=1, SIDE=8)
        assert changed == (
            "-default-device",
            "-DKIND=int",
            "-DLANES=1",
            "-DSIDE=8",
            "-Dreal=double",
        )
        assert repr(source) == "<kernel source axpy>"
    finally:
        from legato_rt.kernels.axpy import AXPY

        SOURCES["axpy"] = AXPY


@pytest.mark.parametrize("dtype", [np.float16, np.int32, np.complex64, ">f4"])
def test_other_precisions_are_refused(dtype: Any) -> None:
    with pytest.raises(TypeError, match="float32 and float64 only"):
        SOURCES["axpy"].options("opencl", dtype)


def test_one_precision() -> None:
    single, double = np.ones(2, np.float32), np.ones(2)
    assert one_precision(single, single)
    assert one_precision(double)
    assert not one_precision(single, double)
    assert not one_precision(np.ones(2, int))
    assert not one_precision(single, single.astype(">f4"))
    assert not one_precision(single, 1.0)
    assert not one_precision(None)
    assert leading(2)(single, single, double)
    assert not leading(3)(single, single, double)


def test_conditions_take_what_the_samples_make() -> None:
    """And refuse it in a precision that no kernel is built for."""
    for sample in SAMPLES:
        for dtype, fits in ((np.float32, True), (np.float64, True), (np.float16, False)):
            args = sample.arguments(dtype)
            on_device = [v for v in sample.task.variants if v.kind != "cpu"]
            for variant in on_device:
                usable = fits and ("numba_cuda" not in variant.name or has_numba_cuda())
                assert variant.when is not None
                assert bool(variant.when(*args)) == usable, (variant, dtype)


def test_shapes_that_do_not_fit_are_refused() -> None:
    """Before any device is asked for, so that host arrays will do."""
    for sample in SAMPLES:
        args = sample.arguments()
        arrays = [i for i, arg in enumerate(args) if isinstance(arg, np.ndarray)]
        last = arrays[-1]
        wrong = list(args)
        wrong[last] = np.zeros((*args[last].shape[:-1], args[last].shape[-1] + 1, 1), np.float32)
        for variant in sample.task.variants:
            if variant.kind != "cpu" and len(arrays) > 1:
                with pytest.raises(ValueError):  # noqa: PT011 - each says it in its own words
                    variant.function(*wrong)


def test_potrf_is_of_squares() -> None:
    with pytest.raises(ValueError, match="no Cholesky factor"):
        device_factors.potrf_device(np.ones((2, 3)))


@pytest.mark.parametrize("classes", [np.zeros(3, np.int16), np.zeros(3), [0, 1, 2]])
def test_classes_of_other_types_stay_on_the_cpu(classes: Any) -> None:
    scores = np.zeros((3, 2), np.float32)
    assert not device_network.with_classes(scores, classes, np.zeros(3, np.float32))


@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
@pytest.mark.parametrize("itemsize", [4, 8])
@pytest.mark.parametrize("columns", [1, 100])
def test_register_block_leaves_registers_for_operands(
    vector_bytes: int, itemsize: int, columns: int
) -> None:
    block = device_products.register_block(vector_bytes, itemsize, columns)
    registers = 32 if vector_bytes == 64 else 16
    assert block["VECTOR"] * itemsize == vector_bytes
    assert block["ROWS"] * block["VECTORS"] + block["VECTORS"] + 1 <= registers
