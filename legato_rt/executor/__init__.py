"""Executors: what runs the scheduler's instructions, one a file."""

from __future__ import annotations

from legato_rt.errors import SettingError
from legato_rt.executor.base import Executor
from legato_rt.executor.serial import SerialExecutor
from legato_rt.executor.threads import ThreadsExecutor

EXECUTORS: dict[str, type[Executor]] = {
    "serial": SerialExecutor,
    "threads": ThreadsExecutor,
}
"""Every executor that ships, by name."""


def executor_class(name: str) -> type[Executor]:
    """The executor of a name; an unknown one raises `SettingError`."""
    if name not in EXECUTORS:
        raise SettingError(f"executor {name!r} is none of {', '.join(sorted(EXECUTORS))}")
    return EXECUTORS[name]
