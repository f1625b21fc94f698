"""legato_rt: annotated Python functions run as a task graph on the devices that are there."""

from __future__ import annotations

from legato_rt._checkout import verify

verify()

from importlib.metadata import version as _version  # noqa: E402

from legato_rt import formats, order, powerbudget  # noqa: E402
from legato_rt.access import In, InOut, Out  # noqa: E402
from legato_rt.capture import Captured, capture  # noqa: E402
from legato_rt.check import Comparison, check  # noqa: E402
from legato_rt.energy import Reading  # noqa: E402
from legato_rt.errors import (  # noqa: E402
    AccessError,
    BuildError,
    CancelledError,
    ClosedError,
    DependencyError,
    DeviceError,
    DeviceLost,
    DeviceOutOfMemory,
    FormatError,
    InternalError,
    LegatoError,
    LentDataError,
    NoRuntimeError,
    PlacementError,
    SettingError,
    TaskError,
    UnsupportedError,
    UsageError,
)
from legato_rt.face import host, tiles, wait  # noqa: E402
from legato_rt.future import Future  # noqa: E402
from legato_rt.machine import Device, Machine  # noqa: E402
from legato_rt.policy.base import Policy  # noqa: E402
from legato_rt.replay import Replay  # noqa: E402
from legato_rt.report import Report  # noqa: E402
from legato_rt.runtime import Runtime  # noqa: E402
from legato_rt.task import Task, Variant, task  # noqa: E402
from legato_rt.trace import Trace  # noqa: E402

__version__ = _version("legato_rt")

__all__ = [
    "AccessError",
    "BuildError",
    "CancelledError",
    "Captured",
    "ClosedError",
    "Comparison",
    "DependencyError",
    "Device",
    "DeviceError",
    "DeviceLost",
    "DeviceOutOfMemory",
    "FormatError",
    "Future",
    "In",
    "InOut",
    "InternalError",
    "LegatoError",
    "LentDataError",
    "Machine",
    "NoRuntimeError",
    "Out",
    "PlacementError",
    "Policy",
    "Reading",
    "Replay",
    "Report",
    "Runtime",
    "SettingError",
    "Task",
    "TaskError",
    "Trace",
    "UnsupportedError",
    "UsageError",
    "Variant",
    "capture",
    "check",
    "formats",
    "host",
    "order",
    "powerbudget",
    "task",
    "tiles",
    "wait",
]
