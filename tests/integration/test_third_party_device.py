"""A device driver in a distribution of its own: installed, found, used, held to the contract."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "legato-device-example"

PROGRAM = """
import numpy as np
import legato_rt as lrt
from legato_rt import In, InOut

@lrt.task
def add(x: In[np.ndarray], y: InOut[np.ndarray]) -> float:
    raise AssertionError("on the disk alone")

@add.variant("disk")
def add_on_disk(x, y):
    assert type(x) is type(y) is np.memmap
    y += x
    return float(y[0, 0])

a, b = np.ones((300, 200)), np.zeros((300, 200))
with lrt.Runtime(devices="disk", memory_limit=3 * 60 * 100 * 8, trace=True) as rt:
    parts = list(zip(lrt.tiles(a, 60, 100).flat, lrt.tiles(b, 60, 100).flat))
    for _ in range(3):
        futures = [add.submit(x, y) for x, y in parts]
    rt.wait(b)
    print(sorted({future.result() for future in futures}), b.min(), b.max(), len(rt.trace.copies))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process that has the distribution installed."""
    folder = tmp_path_factory.mktemp("installed")
    source = folder / "source"
    shutil.copytree(EXAMPLE, source, ignore=shutil.ignore_patterns("build", "*.egg-info"))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--disable-pip-version-check"]
    subprocess.run([*command, "--target", str(folder / "site"), str(source)], check=True)
    path = os.pathsep.join((str(folder / "site"), os.environ.get("PYTHONPATH", "")))
    return {**os.environ, "PYTHONPATH": path, "LEGATO_DISK": str(folder)}


def run(code: str, environment: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_is_listed(installed: dict[str, str]) -> None:
    code = "from legato_rt.cli import main; main()"
    found = json.loads(run(code, installed, "devices", "--json"))
    (device,) = (d for d in found["devices"] if d["kind"] == "disk")
    assert device["detail"] == installed["LEGATO_DISK"]
    assert found["problems"]["disk"] == []


def test_what_it_lacks_is_said(installed: dict[str, str]) -> None:
    code = "from legato_rt.cli import main; main()"
    lacking = {**installed, "LEGATO_DISK": str(ROOT / "no such folder")}
    found = json.loads(run(code, lacking, "devices", "--json"))
    assert "disk" not in {d["kind"] for d in found["devices"]}
    assert "set LEGATO_DISK" in found["problems"]["disk"][0]


def test_tasks_run_on_it(installed: dict[str, str], tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM, encoding="utf-8")
    out = run(f"import runpy; runpy.run_path({str(script)!r})", installed)
    values, low, high, copies = re.fullmatch(r"(\[.*\]) (\S+) (\S+) (\d+)\s*", out).groups()  # type: ignore[union-attr]
    assert (values, float(low), float(high)) == ("[3.0]", 3.0, 3.0)
    assert int(copies) >= 3 * 10  # ten tiles of each array there, ten of one back


def test_a_full_disk_is_out_of_memory(installed: dict[str, str]) -> None:
    code = """
import numpy as np
from legato_device_example import backend
from legato_rt.errors import DeviceOutOfMemory
memory = backend.open(backend.discover()[0]).memory
try:
    memory.allocate(np.broadcast_to(np.uint8(0), (1 << 60,)))
except DeviceOutOfMemory as error:
    print(error)
"""
    assert str(1 << 60) in run(code, installed)


def test_the_page_shows_the_file_as_it_is() -> None:
    page = (ROOT / "docs" / "device.md").read_text(encoding="utf-8")
    shown = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert (EXAMPLE / "legato_device_example.py").read_text(encoding="utf-8") in shown


def test_it_fulfils_the_contract(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The copies of every view that the contract of drivers tries, there and back."""
    from tests.contract.test_backends import VIEWS

    monkeypatch.syspath_prepend(str(EXAMPLE))
    monkeypatch.setenv("LEGATO_DISK", str(tmp_path))
    import legato_device_example as example  # type: ignore[import-not-found,unused-ignore]

    session = example.backend.open(example.backend.discover()[0])
    for view in VIEWS.values():
        array = session.memory.allocate(view)
        session.memory.upload(view, array)
        back = np.zeros_like(view, subok=False)
        session.memory.download(array, back)
        np.testing.assert_array_equal(back, view)
    session.close()
    sys.modules.pop("legato_device_example")
