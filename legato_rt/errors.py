"""The errors legato_rt raises, and whose fault each of them is.

::

    LegatoError
    ├── UsageError            the program asks for something that has no meaning
    │   ├── NoRuntimeError    submit without an open Runtime
    │   ├── ClosedError       submit to a Runtime that is closing or closed
    │   ├── LentDataError     the program touches data that a running graph holds
    │   ├── AccessError       a task touches what it did not declare
    │   ├── SettingError      a setting, option or file has a value that cannot be used
    │   │   └── FormatError   a file's content; the message names the file and the line or field
    │   └── UnsupportedError  an option that this executor cannot honour, refused not ignored
    ├── PlacementError        no device can take the task
    ├── TaskError             a task's body raised; the user's exception is its __cause__
    ├── DependencyError       a task did not run because one it needs failed
    ├── DeviceError           a device driver's error, with its own message
    │   ├── DeviceOutOfMemory     a device cannot hold what a task needs at once
    │   ├── BuildError            a kernel does not compile; the log has the source line
    │   └── DeviceLost            the device does not answer any more
    ├── CancelledError        the task was cancelled (also a concurrent.futures.CancelledError)
    └── InternalError         a fault of legato_rt itself: please report it
        └── IllegalTransition
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import Sequence

__all__ = [
    "AccessError",
    "BuildError",
    "CancelledError",
    "ClosedError",
    "DependencyError",
    "DeviceError",
    "DeviceLost",
    "DeviceOutOfMemory",
    "FormatError",
    "IllegalTransition",
    "InternalError",
    "LegatoError",
    "LentDataError",
    "NoRuntimeError",
    "PlacementError",
    "SettingError",
    "TaskError",
    "UnsupportedError",
    "UsageError",
]


NEVER = 1 << 62


class LegatoError(Exception):
    """Base of everything legato_rt raises on purpose.

    Attributes
    ----------
    delivered : int
        When the program saw it, counted in submits; `NEVER` before that. Failures that it has not
        seen are raised when the runtime closes.
    """

    delivered = NEVER


class UsageError(LegatoError):
    """The program asks for something that has no meaning."""


class NoRuntimeError(UsageError):
    """``submit`` was called while no :class:`~legato_rt.Runtime` was open."""


class ClosedError(UsageError):
    """``submit`` was called on a runtime that is closing or closed."""


class LentDataError(UsageError):
    """The program touched data that belongs to a running graph."""


class AccessError(UsageError):
    """A task touched data that it, or its parent, did not declare."""


class SettingError(UsageError, ValueError):
    """A setting has a value that cannot be used."""


class FormatError(SettingError):
    """A file holds what its format does not allow; the message names the file and the place.

    Attributes
    ----------
    file : str
        The file, or what stands for one.
    place : str
        ``line 7`` or a field's path such as ``tasks[3].seconds``; empty for the file as a whole.
    """

    def __init__(self, file: object, place: str, problem: str) -> None:
        super().__init__(": ".join(part for part in (str(file), place, problem) if part))
        self.file = str(file)
        self.place = place
        self.problem = problem

    def __reduce__(self) -> tuple[object, ...]:
        return FormatError, (self.file, self.place, self.problem)


class UnsupportedError(UsageError):
    """An option cannot be honoured here, and is refused rather than ignored."""


class PlacementError(LegatoError):
    """No device of the machine can run the task; the message lists what each lacks."""


class TaskError(LegatoError):
    """A task's body raised; the user's exception is ``__cause__``.

    Attributes
    ----------
    task : str
        Name of the task.
    where : str
        ``file:line`` of the ``submit`` that created it.
    variant, device : str
        What ran, and on what.
    attempt : int
        1 for the first try.
    """

    def __init__(
        self, message: str, *, task: str, where: str, variant: str, device: str, attempt: int = 1
    ) -> None:
        super().__init__(message)
        self.task = task
        self.where = where
        self.variant = variant
        self.device = device
        self.attempt = attempt

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_task_error, (self.args[0], self._fields(), self.__cause__)

    def _fields(self) -> dict[str, object]:
        return {
            name: getattr(self, name) for name in ("task", "where", "variant", "device", "attempt")
        }


def _rebuild_task_error(
    message: str, fields: dict[str, str | int], cause: BaseException | None
) -> TaskError:
    error = TaskError(message, **fields)  # type: ignore[arg-type]
    error.__cause__ = cause
    return error


class DependencyError(LegatoError):
    """A task did not run because tasks it depends on failed or were cancelled.

    Attributes
    ----------
    roots : tuple of BaseException
        The errors of the first failed ancestors, one each.
    """

    def __init__(self, message: str, roots: Sequence[BaseException] = ()) -> None:
        super().__init__(message)
        self.roots = tuple(roots)

    def __reduce__(self) -> tuple[object, ...]:
        return DependencyError, (self.args[0], self.roots)


class DeviceError(LegatoError):
    """A device driver's error, with the driver's own message."""


class DeviceOutOfMemory(DeviceError):
    """A device cannot hold what a task needs at once."""


class BuildError(DeviceError):
    """A kernel does not compile; the message holds the compiler's log and the source line."""


class DeviceLost(DeviceError):
    """The device does not answer any more."""


class CancelledError(LegatoError, concurrent.futures.CancelledError):
    """The task was cancelled before it started."""

    delivered = -1  # whoever cancelled it knows


class InternalError(LegatoError):
    """A fault of legato_rt itself."""


class IllegalTransition(InternalError):
    """The scheduler was asked for a transition that its table does not hold."""
