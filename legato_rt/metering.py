"""The meters of a machine: found by their drivers, read while a runtime is open.

A driver is one object that fulfils `MeterDriver`, named in the entry point group
``legato_rt.meters``.  A meter that fails costs a measurement, never a run: what it should have
counted is modelled, and the report says so.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterable, Sequence
from importlib import metadata
from typing import Protocol, runtime_checkable

from legato_rt.energy import EnergyMeter, Measurement
from legato_rt.errors import SettingError
from legato_rt.machine import Device

GROUP = "legato_rt.meters"


@runtime_checkable
class MeterDriver(Protocol):
    """Finds the meters of one kind.

    Attributes
    ----------
    name : str
    """

    name: str

    def open(self, devices: Sequence[Device]) -> Sequence[EnergyMeter]:
        """Meters that count now and cover one of the devices at least; none is no error."""

    def problems(self) -> Sequence[str]:
        """What keeps meters of this kind from being used, and what to do about each."""


@functools.cache
def meter_drivers() -> tuple[MeterDriver, ...]:
    """All installed drivers, by name.

    Raises
    ------
    SettingError
        If one cannot be loaded or does not fulfil the contract.
    """
    found: dict[str, MeterDriver] = {}
    for entry in metadata.entry_points(group=GROUP):
        try:
            driver = entry.load()
        except Exception as error:
            raise SettingError(f"the meter {entry.value} cannot be loaded: {error}") from error
        if not isinstance(driver, MeterDriver):
            raise SettingError(f"the meter {entry.value} does not fulfil MeterDriver")
        found[driver.name] = driver
    return tuple(found[name] for name in sorted(found))


class Meters:
    """The meters that cover some devices, counting from now on.

    They are read when `measurements` is called and when they are closed; those that must be read
    more often are read by a thread, which exists only where there is such a meter.
    """

    def __init__(self, meters: Sequence[EnergyMeter] = (), refused: Sequence[Measurement] = ()):
        self._meters = list(meters)
        self._refused = list(refused)
        self._final: tuple[Measurement, ...] | None = None if self._meters else tuple(refused)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        periods_s = [meter.period_s for meter in self._meters if meter.period_s is not None]
        if periods_s:
            self._thread = threading.Thread(
                target=self._sample, args=(min(periods_s),), name="legato-meters", daemon=True
            )
            self._thread.start()

    @classmethod
    def open(
        cls, devices: Iterable[Device], drivers: Iterable[MeterDriver] | None = None
    ) -> Meters:
        """Take the meters of some devices into use.

        Parameters
        ----------
        devices : iterable of Device
        drivers : iterable of MeterDriver, optional
            Those that are installed by default.

        Notes
        -----
        Where two meters cover one device, the first counts: its joules are not counted twice.
        """
        there = list(devices)
        meters: list[EnergyMeter] = []
        refused: list[Measurement] = []
        covered: dict[str, str] = {}
        for driver in meter_drivers() if drivers is None else drivers:
            try:
                opened = driver.open(there)
            except Exception as error:  # a driver from anywhere; the run does not depend on it
                refused.append(Measurement(driver.name, (), None, _said(error)))
                continue
            for meter in opened:
                twice = [name for name in meter.devices if name in covered]
                if twice:
                    meter.close()
                    why = f"not used: {covered[twice[0]]} already counts {twice[0]}"
                    refused.append(Measurement(meter.name, (), None, why))
                    continue
                covered.update((name, meter.name) for name in meter.devices)
                meters.append(meter)
        return cls(meters, refused)

    def measurements(self) -> tuple[Measurement, ...]:
        """What each meter says: now, or when it was closed."""
        if self._final is not None:
            return self._final
        with self._lock:
            return (*map(_read, self._meters), *self._refused)

    def close(self) -> None:
        """Read all for the last time and give them back; closing twice does nothing."""
        if self._final is not None:
            return
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._final = self.measurements()
        for meter in self._meters:
            try:
                meter.close()
            except Exception:  # its last word has been heard
                continue

    def _sample(self, period_s: float) -> None:
        while not self._stop.wait(period_s):
            with self._lock:
                for meter in self._meters:
                    if meter.period_s is not None:
                        _read(meter)


def _read(meter: EnergyMeter) -> Measurement:
    try:
        energy = meter.read()
        return Measurement(meter.name, meter.devices, energy, meter.problem)
    except Exception as error:  # a meter from anywhere; the run does not depend on it
        return Measurement(meter.name, meter.devices, None, _said(error))


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
