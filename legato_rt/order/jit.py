"""Numba's compiler as a decorator that keeps a function's type.

Only modules that hold compiled functions import this one, and they are imported where one of
their functions is first called: `import legato_rt` loads no Numba.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Have Numba compile a function, without the GIL, and keep the machine code on disk."""
    return cast(F, njit(nogil=True, cache=True)(function))
