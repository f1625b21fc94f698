"""`check`: do all variants of a task agree with its reference?"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from legato_rt.access import OUT
from legato_rt.arguments import arrays_in, rebuilt
from legato_rt.backend import Session, backends
from legato_rt.errors import UsageError
from legato_rt.machine import Device, Machine
from legato_rt.task import Task, Variant

DEFAULT_RTOL = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-12}


@dataclass(frozen=True, slots=True)
class Comparison:
    """One variant on one device against the reference, over all samples.

    Attributes
    ----------
    samples : int
        How many it ran; the others its ``when`` refused.
    worst : float
        Largest difference found, as a multiple of what ``rtol`` allows: at most 1 if they agree.
    where : str
        The element with the largest difference, both its values, and the sample.
    error : str
        What the variant raised, if it did.
    """

    task: str
    variant: str
    device: str
    samples: int
    worst: float
    where: str
    error: str = ""

    @property
    def ok(self) -> bool:
        """Whether the variant ran and agrees."""
        return not self.error and self.worst <= 1

    def __str__(self) -> str:
        verdict = self.error or f"{self.worst:.3g} of the tolerance {self.where}".rstrip()
        mark = "ok" if self.ok else "FAILED"
        return f"{mark:<6} {self.task} {self.variant} on {self.device}: {verdict}"


def check(
    task: Task[..., Any],
    samples: Iterable[Sequence[Any]],
    devices: str | Iterable[str] | None = None,
) -> list[Comparison]:
    """Run every variant of a task on samples and compare it with the reference body.

    Parameters
    ----------
    task : Task
    samples : iterable of sequences
        Arguments of one call each; they are copied, never written.
    devices : str or iterable of str, optional
        Names or kinds; all real ones of this machine by default.

    Returns
    -------
    list of Comparison
        One for each variant and each device that runs its kind.

    Raises
    ------
    UsageError
        If there is no sample.
    """
    calls = [tuple(sample) for sample in samples]
    if not calls:
        raise UsageError(f"check({task.name}) needs at least one sample")
    kinds = {variant.kind for variant in task.variants}
    asked = {b.kind for b in backends().values() if kinds.intersection(b.runs)}
    found: list[Comparison] = []
    machine = Machine.discover(asked)
    real = [device.name for device in machine.devices if not device.simulated]
    for device in machine.select(devices if devices is not None else real).devices:
        variants = [v for v in task.variants[1:] if v.kind in device.accepts]
        with contextlib.closing(backends()[device.kind].open(device)) as session:
            found += [_compare(task, v, device, session, calls) for v in variants]
    return found


def _compare(
    task: Task[..., Any],
    variant: Variant,
    device: Device,
    session: Session,
    calls: list[tuple[Any, ...]],
) -> Comparison:
    worst, where, count = 0.0, "", 0
    for number, args in enumerate(calls):
        if variant.when is not None and not variant.when(*args):
            continue
        count += 1
        expected = copy.deepcopy(args)
        wanted = _outcome(task, expected, task.function(*expected))
        actual = copy.deepcopy(args)
        try:
            got = _outcome(task, actual, _run(session, variant, actual))
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            return Comparison(task.name, variant.name, device.name, count, np.inf, "", message)
        for name, a, b in zip(wanted, wanted.values(), got.values(), strict=True):
            ratio, place = _difference(a, b, task.rtol)
            if ratio > worst:
                worst, where = ratio, f"in {name}{place} of sample {number}"
    return Comparison(task.name, variant.name, device.name, count, worst, where)


def _run(session: Session, variant: Variant, args: tuple[Any, ...]) -> Any:
    """Call a variant on a device and bring back what it wrote."""
    memory = getattr(session, "memory", None)
    if memory is None:
        return session.call(0, variant.function, args, {})
    pairs: dict[int, tuple[Any, Any]] = {}

    def put(array: npt.NDArray[Any]) -> Any:
        if id(array) not in pairs:
            there = memory.allocate(array)
            memory.upload(array, there)
            pairs[id(array)] = array, there
        return memory.on_worker(pairs[id(array)][1], 0)

    value = session.call(0, variant.function, [rebuilt(arg, put) for arg in args], {})
    for array, there in pairs.values():
        if array.flags.writeable:
            memory.download(there, array)
        memory.free(there)
    return value


def _outcome(
    task: Task[..., Any], args: tuple[Any, ...], value: Any
) -> dict[str, npt.NDArray[Any]]:
    """What a call left behind: the arrays that it writes, and its value."""
    found = {}
    for name, mode, argument in task.signature.items(args, None):
        if mode & OUT:
            for i, array in enumerate(arrays_in(argument)):
                found[f"{name}[{i}]" if i else name] = array
    if value is not None:
        found["its value"] = np.asarray(value)
    return found


def _difference(
    wanted: npt.NDArray[Any], got: npt.NDArray[Any], rtol: float | None
) -> tuple[float, str]:
    """Largest difference in units of the tolerance, and where it is.

    The tolerance of an element is ``rtol`` of the largest finite magnitude of the reference: sums
    of terms that cancel are not held to their own small size.
    """
    if wanted.shape != got.shape:
        return np.inf, f": shape {got.shape} in place of {wanted.shape}"
    if not wanted.size:
        return 0.0, ""
    if wanted.dtype.kind not in "fc":
        unequal = np.flatnonzero(wanted.ravel() != got.ravel())
        return (np.inf, _place(wanted, got, int(unequal[0]))) if unequal.size else (0.0, "")
    allowed = rtol if rtol is not None else DEFAULT_RTOL.get(wanted.dtype, 1e-5)
    finite = np.isfinite(wanted)
    scale = float(np.abs(wanted[finite]).max()) if finite.any() else 1.0
    same = (wanted == got) | (np.isnan(wanted) & np.isnan(got))
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0.0, np.abs(wanted - got) / (allowed * (scale or 1.0)))
    apart = np.where(np.isnan(apart), np.inf, apart)
    at = int(np.argmax(apart))
    return float(apart.ravel()[at]), _place(wanted, got, at)


def _place(wanted: npt.NDArray[Any], got: npt.NDArray[Any], at: int) -> str:
    index = tuple(int(i) for i in np.unravel_index(at, wanted.shape))
    return f"{list(index)} ({got.ravel()[at]!r} in place of {wanted.ravel()[at]!r})"
