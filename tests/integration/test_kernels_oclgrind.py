"""Every OpenCL kernel under Oclgrind, which reports data races and accesses out of bounds."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from legato_rt.kernels import samples  # noqa: F401 - registers every source
from legato_rt.kernels.device_source import SOURCES

ROOT = Path(__file__).resolve().parents[2]
KERNELS = sorted(
    kernel
    for source in SOURCES.values()
    for kernel in re.findall(r"__kernel void (\w+)\(", source.text("opencl"))
)

FAULTS = """
import pyopencl as cl
(platform,) = (p for p in cl.get_platforms() if "Oclgrind" in p.name)
queue = cl.CommandQueue(cl.Context(platform.get_devices()))
program = cl.Program(queue.context, '''
__kernel void race(__global int *x) { x[0] = get_local_id(0); }
__kernel void local_race(__global int *x) {
    __local int shared[4];
    shared[get_local_id(0)] = 1;
    x[get_local_id(0)] = shared[3 - get_local_id(0)];
}
__kernel void bounds(__global int *x) { if (get_local_id(0) == 0) x[4] = 1; }
__kernel void fine(__global int *x) { x[get_local_id(0)] = 1; }
''').build()
memory = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, 16)
for name in ("race", "local_race", "bounds", "fine"):
    cl.Kernel(program, name)(queue, (4,), (4,), memory)
    queue.finish()
"""


@dataclass
class Outcome:
    """What a program printed, and the kernels that Oclgrind complained about with its words."""

    printed: str
    complaints: list[tuple[str, str]]


@pytest.fixture(scope="module")
def simulate(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Outcome]:
    cl = pytest.importorskip("pyopencl", exc_type=ImportError)
    if not any("Oclgrind" in platform.name for platform in cl.get_platforms()):
        pytest.skip("Oclgrind is not installed")

    def run(*command: str) -> Outcome:
        log = tmp_path_factory.mktemp("oclgrind") / "log"
        env = {
            **os.environ,
            "OCLGRIND_LOG": str(log),
            "OCLGRIND_DATA_RACES": "1",
            "PYOPENCL_NO_CACHE": "1",
        }
        done = subprocess.run(
            [sys.executable, *command], cwd=ROOT, env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        text = log.read_text(encoding="utf-8") if log.exists() else ""
        reports = re.split(r"\n\s*\n(?=\S)", text.strip()) if text.strip() else []
        named = [(re.search(r"Kernel: (\w+)", report), report) for report in reports]
        return Outcome(done.stdout, [(name[1] if name else "", what) for name, what in named])

    return run


@pytest.fixture(scope="module")
def outcome(simulate: Callable[..., Outcome]) -> Outcome:
    return simulate("-m", "tests.helpers.oclgrind_run")


def test_faults_are_found(simulate: Callable[..., Outcome]) -> None:
    kernels = {kernel for kernel, _ in simulate("-c", FAULTS).complaints}
    assert kernels == {"race", "local_race", "bounds"}


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernel_is_clean(kernel: str, outcome: Outcome) -> None:
    assert kernel in outcome.printed.split(), "it was not run"
    assert [what for name, what in outcome.complaints if name == kernel] == []


def test_no_complaint_about_anything_else(outcome: Outcome) -> None:
    assert outcome.complaints == []
