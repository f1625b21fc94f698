"""What is built from this tree: both linked packages in full, nothing under their short names."""

import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINKED = ("kernels", "devices")
BUILT_FROM = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "legato_rt", *LINKED)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a copy of what a build reads, links kept as links, with one source of each kind."""
    copy = tmp_path / "tree"
    copy.mkdir()
    for name in BUILT_FROM:
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name,
                copy / name,
                symlinks=True,
                ignore=shutil.ignore_patterns("__pycache__"),
            )
        else:
            shutil.copy(ROOT / name, copy)
    for source in ("opencl/sample.cl", "cuda/sample.cu"):
        path = copy / "kernels" / source
        path.parent.mkdir(exist_ok=True)
        path.write_text("// a sample\n", encoding="utf-8")
    return copy


def build(tree: Path, what: str, out: Path) -> subprocess.CompletedProcess[str]:
    code = f"from setuptools import build_meta as b; b.build_{what}({str(out)!r})"
    return subprocess.run([sys.executable, "-c", code], cwd=tree, capture_output=True, text=True)


def expected(tree: Path) -> set[str]:
    """Return the files that belong into a wheel, under the names that they are imported by."""
    own = {
        path.relative_to(tree).as_posix()
        for path in (tree / "legato_rt").rglob("*")
        if path.is_file() and path.suffix in {".py", ".typed", ".toml"}
    }
    linked = {
        f"legato_rt/{path.relative_to(tree).as_posix()}"
        for name in LINKED
        for path in (tree / name).rglob("*")
        if path.suffix in {".py", ".cl", ".cu"}
    }
    return own | linked


def packaged(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


@pytest.mark.slow
def test_wheel_holds_the_linked_packages(tree: Path, tmp_path: Path) -> None:
    want = expected(tree)
    assert {"legato_rt/kernels/__init__.py", "legato_rt/kernels/opencl/sample.cl"} <= want
    run = build(tree, "wheel", tmp_path)
    assert run.returncode == 0, run.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert packaged(wheel) == want


@pytest.mark.slow
def test_wheel_from_sdist_is_the_same(tree: Path, tmp_path: Path) -> None:
    want = expected(tree)
    assert build(tree, "sdist", tmp_path).returncode == 0
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    unpacked = tmp_path / sdist.name.removesuffix(".tar.gz")
    assert not (unpacked / "legato_rt" / "kernels").is_symlink()
    run = build(unpacked, "wheel", tmp_path)
    assert run.returncode == 0, run.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert packaged(wheel) == want


@pytest.mark.parametrize("name", LINKED)
def test_build_without_links_is_refused(tree: Path, tmp_path: Path, name: str) -> None:
    link = tree / "legato_rt" / name
    link.unlink()
    link.write_text(f"../{name}", encoding="utf-8")
    run = build(tree, "wheel", tmp_path)
    assert run.returncode != 0
    assert f"legato_rt/{name}: no package there" in run.stderr


@pytest.mark.parametrize("group", ["legato_rt.backends", "legato_rt.kernels"])
def test_entry_points_load(group: str) -> None:
    found = [e for e in metadata.entry_points(group=group) if e.dist and e.dist.name == "legato_rt"]
    assert found != []
    assert [e.name for e in found if e.load() is None] == []
