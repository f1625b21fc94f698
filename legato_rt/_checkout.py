"""Says what is wrong with a checkout whose links are text files.

``legato_rt/kernels`` and ``legato_rt/devices`` are symbolic links to the top-level folders of the
same names. Git without symbolic links (``core.symlinks=false``, the default on Windows) writes a
small text file in place of each. This module depends on nothing, so that the build, the Makefile
and the package itself can all ask it.
"""

from pathlib import Path

LINKED = ("kernels", "devices")


def problem(package_dir: Path) -> str | None:
    """Return one line that says what is missing, or None where both packages are there."""
    missing = [name for name in LINKED if not (package_dir / name / "__init__.py").is_file()]
    if not missing:
        return None
    paths = " and ".join(f"legato_rt/{name}" for name in missing)
    return (
        f"{paths}: no package there, but a link belongs there; this checkout was made without "
        f"symbolic links. Run `git config core.symlinks true` and `git checkout -- "
        f"{' '.join(f'legato_rt/{name}' for name in missing)}` (on Windows, switch on "
        f"Developer Mode first)."
    )


def verify() -> None:
    """Raise ImportError where this package lacks its linked folders."""
    found = problem(Path(__file__).parent)
    if found is not None:
        raise ImportError(found)


if __name__ == "__main__":
    raise SystemExit(problem(Path(__file__).parent))
