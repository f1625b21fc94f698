"""What holds for every test: no thread outlives it, and what it needs is there or it is skipped.

A test marked ``gpu``, ``fpga`` or ``browser`` is skipped, with the reason, where there is none.
Hypothesis has no deadline here, since machines differ, and repeats the same examples where ``CI``
is set.
"""

import ctypes
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from importlib import metadata

import hypothesis
import pytest

# What a test learns about this machine is not for the user's own runs.
os.environ.setdefault("LEGATO_RT_COSTS", "off")

hypothesis.settings.register_profile(
    "legato_rt",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("legato_rt")

# A pool that was told to shut down may need this long until its last thread is gone.
THREAD_GRACE_S = 5.0

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


def has_gpu() -> bool:
    """Ask the NVIDIA driver for a device, without loading any package that uses one."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int(0)
    started = driver.cuInit(0) == 0
    return started and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


def has_fpga_emulator() -> bool:
    try:
        return bool(metadata.version("intel-opencl-fpga-emu-rt"))
    except metadata.PackageNotFoundError:
        return False


def has_browser() -> bool:
    return any(shutil.which(name) for name in CHROMIUM)


# marker: what the machine must have, and the reason given where it does not.
NEEDS: dict[str, tuple[Callable[[], bool], str]] = {
    "gpu": (has_gpu, "no NVIDIA GPU here"),
    "fpga": (has_fpga_emulator, "Intel's FPGA emulator is not installed: make test-fpga"),
    "browser": (has_browser, "none of " + ", ".join(CHROMIUM) + " is installed"),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for marker, (present, reason) in NEEDS.items():
        marked = [item for item in items if item.get_closest_marker(marker)]
        if marked and not present():
            for item in marked:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def no_thread_left_behind() -> Iterator[None]:
    """Fail a test after which a thread runs that did not run before it."""
    before = set(threading.enumerate())
    yield
    deadline_s = time.monotonic() + THREAD_GRACE_S
    started = [thread for thread in threading.enumerate() if thread not in before]
    for thread in started:
        if thread is not threading.current_thread():
            thread.join(max(0.0, deadline_s - time.monotonic()))
    left = [thread.name for thread in started if thread.is_alive()]
    if left:
        pytest.fail(f"threads left behind: {', '.join(sorted(left))}", pytrace=False)
