"""``rapl``: the energy counters of Intel and AMD processors, read from powercap in sysfs.

The counters form a tree: a package holds its cores and, beside it in the sum, its memory
(``dram``); ``psys`` holds the packages and more.  What is summed is every package and its
``dram``; cores and ``uncore`` are part of their package, and ``psys`` would count it again, as does
``intel-rapl-mmio``, the same counters by another way.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from legato_rt.devices.counters import CLOCKS, Clocks, Counter
from legato_rt.energy import EnergyMeter, Reading
from legato_rt.errors import DeviceError
from legato_rt.machine import Device

VARIABLE = "LEGATO_RT_POWERCAP"
ROOT = "/sys/class/powercap"
PROCESSORS = "/proc/cpuinfo"
MICROJOULE = 1e-6

_ZONE = re.compile(r"(intel-rapl(?:-mmio)?):(\d+)(?::(\d+))?")


@dataclass(frozen=True, slots=True)
class Domain:
    """One counter.

    Attributes
    ----------
    name : str
        ``package-0``, or ``package-0/dram`` for one inside it.
    path : Path
    counted : bool
        Whether it is part of the sum.
    """

    name: str
    path: Path
    counted: bool

    @property
    def is_memory(self) -> bool:
        """Whether it is a package's memory."""
        return self.name.endswith("/dram")

    def read(self) -> int:
        """Microjoules that the counter shows.

        Raises
        ------
        DeviceError
            If it cannot be read, saying why and what to do.
        """
        return _number(self.path / "energy_uj", self.name)

    def span(self) -> int:
        """Microjoules at which the counter goes back to zero."""
        span = _number(self.path / "max_energy_range_uj", self.name)
        if span <= 0:
            raise DeviceError(f"the counter of {self.name} has no range: it must be above zero")
        return span


def domains(root: Path) -> list[Domain]:
    """All counters below a folder such as ``/sys/class/powercap``, packages before their parts."""
    zones: dict[tuple[str, int, int], tuple[str, Path]] = {}
    for path in root.glob("intel-rapl*:*"):
        match = _ZONE.fullmatch(path.name)
        name = _text(path / "name")
        if match is not None and name:
            zones[match[1], int(match[2]), int(match[3] or -1)] = name, path
    found: dict[str, Domain] = {}
    for (way, number, part), (name, path) in sorted(zones.items()):
        whole = zones.get((way, number, -1), ("", path))[0]
        title = name if part < 0 else f"{whole}/{name}"
        counted = whole.startswith("package") and (part < 0 or name == "dram")
        # Both ways lead to the same counters; "intel-rapl" sorts first and stays.
        found.setdefault(title, Domain(title, path, counted))
    return list(found.values())


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _number(path: Path, what: str) -> int:
    try:
        return int(path.read_text(encoding="ascii"))
    except PermissionError as error:
        raise DeviceError(
            f"no permission to read {path}: an administrator must allow it, until the next start "
            f"by `chmod a+r {path}`, for good by the udev rule in docs/energy.md"
        ) from error
    except (FileNotFoundError, NotADirectoryError) as error:
        raise DeviceError(f"the counter of {what} is gone: {path} is not there any more") from error
    except (OSError, ValueError) as error:
        gone = isinstance(error, OSError) and error.errno == errno.ENODEV
        raise DeviceError(
            f"the counter of {what} is gone: its processor was taken out of use"
            if gone
            else f"the counter of {what} cannot be read: {error}"
        ) from error


class RaplMeter:
    """All packages of the machine and their memory, in one sum."""

    name = "rapl"

    def __init__(self, found: Sequence[Domain], devices: Sequence[str], clocks: Clocks) -> None:
        self.devices = tuple(devices)
        self._counters = [
            (domain, Counter(domain.name, domain.read, MICROJOULE, domain.span(), clocks=clocks))
            for domain in found
        ]
        self.period_s = min(c.period_s for _, c in self._counters if c.period_s is not None)

    @property
    def problem(self) -> str:
        """What befell the first of the counters that matter."""
        return next((c.problem for d, c in self._counters if c.problem and not _mute(d, c)), "")

    def read(self) -> Reading | None:
        """Joules of packages and memory; `None` unless every counter counted to the end."""
        read = [(domain, counter, counter.joules()) for domain, counter in self._counters]
        joules = [j for domain, counter, j in read if not _mute(domain, counter)]
        known = [j for j in joules if j is not None]
        return Reading(sum(known), "measured") if known and len(known) == len(joules) else None

    def close(self) -> None:
        """Nothing is held."""


def _mute(domain: Domain, counter: Counter) -> bool:
    """Some machines show a counter for memory that none of their parts drives."""
    return domain.is_memory and counter.mute


class RaplDriver:
    """Finds the counters of the processors.

    Parameters
    ----------
    root : str, optional
        Where powercap is; ``LEGATO_RT_POWERCAP`` or ``/sys/class/powercap`` by default.
    clocks : Clocks
    processors : str
        The file that names the processors.
    """

    name = "rapl"

    def __init__(
        self, root: str | None = None, clocks: Clocks = CLOCKS, processors: str = PROCESSORS
    ) -> None:
        self._root = root
        self._clocks = clocks
        self._processors = processors

    @property
    def root(self) -> Path:
        """The folder of the counters."""
        return Path(self._root or os.environ.get(VARIABLE) or ROOT)

    def open(self, devices: Sequence[Device]) -> Sequence[EnergyMeter]:
        """One meter, if its counters can be read and a device runs on the processors."""
        found = [domain for domain in domains(self.root) if domain.counted]
        covered = [d.name for d in devices if self._runs(d)] if found else []
        if not covered:
            return []
        try:
            return [RaplMeter(found, covered, self._clocks)]
        except DeviceError:  # `problems` says it
            return []

    def problems(self) -> Sequence[str]:
        """What keeps the counters from being read, and what to do."""
        if not self.root.is_dir():
            return [
                f"no {self.root}: energy of processors cannot be counted here, as on most virtual "
                "machines, and is modelled; on real hardware the module intel_rapl_msr must be "
                "loaded"
            ]
        found = [domain for domain in domains(self.root) if domain.counted]
        if not found:
            return [
                f"no processor package in {self.root}: the module intel_rapl_msr must be loaded "
                "(modprobe intel_rapl_msr)"
            ]
        problems = []
        for domain in found:
            try:
                domain.read()
                domain.span()
            except DeviceError as error:
                problems.append(str(error))
        return problems

    def _runs(self, device: Device) -> bool:
        """Whether a device is this machine's processors, by itself or through OpenCL."""
        if device.simulated:
            return False
        if device.kind == "cpu":
            return True
        models = re.findall(r"(?m)^model name\s*:\s*(.+?)\s*$", _text(Path(self._processors)))
        return any(model in device.detail for model in set(models))


driver = RaplDriver()
