"""Numba compilation put off until the first call, so that importing a kernel costs nothing."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any


def lazy_njit(function: Callable[..., None]) -> Callable[..., None]:
    """Have Numba compile a function when it is first called; it then runs without the GIL.

    The machine code is cached on disk, and made anew for every new combination of argument
    types. The function can call no other of its kind.
    """
    lock = threading.Lock()
    compiled: Callable[..., None] | None = None

    @functools.wraps(function)
    def call(*args: Any) -> None:
        nonlocal compiled
        if compiled is None:
            with lock:
                if compiled is None:
                    from numba import njit

                    compiled = njit(nogil=True, cache=True)(function)
        compiled(*args)

    return call
