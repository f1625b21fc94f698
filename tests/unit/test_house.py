"""The house's own tools: the guard against left-over threads, the checkout's check, the style."""

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from legato_rt import _checkout

ROOT = Path(__file__).resolve().parents[2]

LEAVES_A_THREAD = """
import threading

release = threading.Event()

def test_leaves_one():
    threading.Thread(target=release.wait, args=(60,), name="straggler", daemon=True).start()

def test_releases_it():
    release.set()

def test_ends_its_own():
    thread = threading.Thread(target=release.wait)
    thread.start()
    thread.join()
"""


def test_a_thread_left_behind_fails_its_test(tmp_path: Path) -> None:
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "test_threads.py").write_text(LEAVES_A_THREAD, encoding="utf-8")
    conftest = tmp_path / "conftest.py"
    text = conftest.read_text(encoding="utf-8")
    conftest.write_text(text.replace("GRACE_S = 5.0", "GRACE_S = 0.1"), encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert "threads left behind: straggler" in run.stdout
    assert "3 passed, 1 error" in run.stdout


def test_checkout_with_links_is_accepted() -> None:
    _checkout.verify()


@pytest.mark.parametrize("broken", _checkout.LINKED)
def test_checkout_without_links_is_explained(tmp_path: Path, broken: str) -> None:
    for name in set(_checkout.LINKED) - {broken}:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    (tmp_path / broken).write_text(f"../{broken}", encoding="utf-8")
    problem = _checkout.problem(tmp_path)
    assert problem is not None
    assert "\n" not in problem
    assert problem.startswith(f"legato_rt/{broken}: ")
    assert f"git checkout -- legato_rt/{broken}`" in problem


def test_links_of_the_pages_lead_somewhere() -> None:
    main = runpy.run_path(str(ROOT / "docs" / "check_links.py"))["main"]
    assert main(ROOT) == 0


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("# A title\n[up](#a-title) [out](https://example.org/none) [page](b.md#other)", 0),
        ("[gone](missing.md)", 1),
        ("# A title\n[gone](#another)", 1),
        ("```\n[in code](missing.md)\n```", 0),
    ],
)
def test_broken_links_are_found(tmp_path: Path, text: str, code: int) -> None:
    (tmp_path / "a.md").write_text(text, encoding="utf-8")
    (tmp_path / "b.md").write_text("## Other\n", encoding="utf-8")
    main = runpy.run_path(str(ROOT / "docs" / "check_links.py"))["main"]
    assert main(tmp_path) == code


@pytest.mark.slow
def test_style_is_clean() -> None:
    """Run ruff and mypy as `make lint` does, in this environment."""
    outer = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "VENV", "STATUS")
    env = {name: value for name, value in os.environ.items() if name not in outer}
    run = subprocess.run(
        ["make", "style", f"PY={sys.executable}"],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
