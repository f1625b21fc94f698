"""Refuses to build from a checkout without symbolic links; all else is in pyproject.toml.

Without this check such a build succeeds and silently leaves out the kernels and the devices.
"""

import runpy
from pathlib import Path

from setuptools import setup

package_dir = Path(__file__).parent / "legato_rt"
problem = runpy.run_path(str(package_dir / "_checkout.py"))["problem"](package_dir)
if problem is not None:
    raise SystemExit(problem)

setup()
