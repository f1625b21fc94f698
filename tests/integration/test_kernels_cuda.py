"""Every CUDA source compiled without a GPU; run against NumPy where there is one.

The kernels that Numba compiles are simulated.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from legato_rt.kernels.device_products import tiles
from legato_rt.kernels.device_source import FOLDER, SOURCES
from legato_rt.kernels.samples import SAMPLES, Draw, Sample
from tests.helpers import nvrtc
from tests.helpers.device_kernels import assert_same, edges, expect, spoil

ROOT = Path(__file__).resolve().parents[2]
DTYPES = [np.float32, np.float64]
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])
VARIANTS = [
    pytest.param(sample, variant.function, id=variant.name)
    for sample in SAMPLES
    for variant in sample.task.variants
    if variant.kind == "cuda"
]
needs_nvrtc = pytest.mark.skipif(
    nvrtc.library() is None, reason="the package nvidia-cuda-nvrtc-cu12 is not installed"
)

# What a source is built with besides its own constants, where a launch says otherwise.
BUILDS: list[tuple[str, dict[str, int | str]]] = [
    *((name, {}) for name in SOURCES),
    ("reduce", {"OPERATION": 1}),
    ("reduce", {"OPERATION": 2}),
    ("spmv", {"COLUMN": "int", "START": "int"}),
    ("softmax_cross_entropy", {"CLASS": "int"}),
]


def test_every_source_is_launched_by_a_module() -> None:
    kernels = {path.stem for path in (FOLDER / "opencl").glob("*.cl")} - {"prelude", "lanes"}
    assert kernels == set(SOURCES)


def test_every_sample_has_variants_for_both() -> None:
    for sample in SAMPLES:
        assert {variant.kind for variant in sample.task.variants} == {"cpu", "opencl", "cuda"}


@needs_nvrtc
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
@every_dtype
@pytest.mark.parametrize(("name", "constants"), BUILDS)
def test_compiles(
    name: str, constants: dict[str, int | str], dtype: Any, architecture: str
) -> None:
    """Without a warning; and the machine code has every kernel in it, under its own name."""
    source = SOURCES[name]
    text = source.text("cuda")
    code, said = nvrtc.compile_cuda(text, architecture, source.options("cuda", dtype, **constants))
    assert said == ""
    # What stands between #ifdef and #endif for OpenCL alone has no __global__.
    kernels = re.findall(r"__kernel void (\w+)\(", re.sub(OPENCL_ONLY, "", text))
    assert kernels
    assert [kernel for kernel in kernels if f".text.{kernel}\0".encode() not in code] == []


OPENCL_ONLY = re.compile(r"#ifdef __OPENCL_VERSION__.*?#endif", re.DOTALL)


@needs_nvrtc
def test_an_error_shows_its_line() -> None:
    with pytest.raises(ValueError, match=r"kernel\.cu\(2\): error"):
        nvrtc.compile_cuda("void f() {}\nint g() { return h; }\n", "sm_90", ["-default-device"])


SIMULATED = """
import numpy as np
from legato_rt.kernels import numba_cuda
from legato_rt.kernels.kmeans_assign import kmeans_assign_numba_cuda
from legato_rt.kernels.samples import SAMPLES
from legato_rt.kernels.stencil2d import stencil2d_numba_cuda
from tests.helpers.device_kernels import assert_same, edges, expect, spoil

assert numba_cuda.config.ENABLE_CUDASIM
tried = {"kmeans_assign": (kmeans_assign_numba_cuda, (70, 5, 3)),
         "stencil2d": (stencil2d_numba_cuda, (9, 17))}
for sample in SAMPLES:
    body, sizes = tried.pop(sample.task.name, (None, None))
    for dtype in (np.float32, np.float64) if body else ():
        for spoiled in (False, True):
            for some in (sizes, *edges(sample)[:-1]):
                args, want = (sample.arguments(dtype, 1, some) for _ in range(2))
                if spoiled:
                    spoil(sample, args, 2)
                    spoil(sample, want, 2)
                expect(sample.task, want)
                body(*args)
                assert_same(args, want)
assert not tried
"""


def test_numba_kernels_in_the_simulator() -> None:
    env = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    run = subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore::RuntimeWarning", "-c", SIMULATED],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.gpu
@every_dtype
@pytest.mark.parametrize(("sample", "body"), VARIANTS)
def test_on_a_gpu(sample: Sample, body: Any, dtype: Any) -> None:
    cupy = pytest.importorskip("cupy", exc_type=ImportError)
    if "numba" in body.__name__:
        pytest.importorskip("numba_cuda", exc_type=ImportError)
    for sizes in edges(sample):
        for spoiled in (False, True):
            args, want = (list(sample.arguments(dtype, 1, sizes)) for _ in range(2))
            if spoiled and sample.task.name not in ("trsm", "potrf"):
                spoil(sample, args, 2)
                spoil(sample, want, 2)
            expect(sample.task, want)
            on_device = [cupy.asarray(a) if isinstance(a, np.ndarray) else a for a in args]
            body(*on_device)
            assert_same([a.get() if hasattr(a, "get") else a for a in on_device], want)


@pytest.mark.gpu
@every_dtype
@pytest.mark.parametrize("sizes", [(1, 1, 1), (70, 130, 33)])
def test_tiles_on_a_gpu(sizes: tuple[int, int, int], dtype: Any) -> None:
    """The product that OpenCL GPUs use, which CUDA leaves to cuBLAS."""
    cupy = pytest.importorskip("cupy", exc_type=ImportError)
    (m, n, k), draw = sizes, Draw(3, dtype)
    a, b, c = draw.normal(m, k), draw.normal(k, n), draw.normal(m, n)
    x, y, z = (cupy.asarray(array) for array in (a, b, c))
    tiles(sizes, (x, k, 1), (y, n, 1), -0.5, (2.0, z, n, False))
    assert_same([z.get()], [(2 * c - 0.5 * a.astype(np.float64) @ b).astype(dtype)])
