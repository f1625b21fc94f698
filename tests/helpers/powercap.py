"""A tree of files as the kernel shows energy counters in sysfs, and clocks that are set by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from legato_rt.devices.counters import Clocks

SPAN_UJ = 262_143_328_850  # what Intel's servers show


@dataclass
class Time:
    """Two clocks: seconds awake, and seconds in all."""

    awake_s: float = 100.0
    asleep_s: float = 50.0

    @property
    def clocks(self) -> Clocks:
        return Clocks(lambda: self.awake_s, lambda: self.awake_s + self.asleep_s)


@dataclass
class Tree:
    """``/sys/class/powercap`` with counters that are set by hand."""

    root: Path
    time: Time = field(default_factory=Time)

    def zone(self, path: str, name: str, uj: int = 1_000_000, span_uj: int = SPAN_UJ) -> None:
        folder = self.root / path
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "name").write_text(name + "\n", encoding="ascii")
        (folder / "max_energy_range_uj").write_text(f"{span_uj}\n", encoding="ascii")
        self.set(path, uj)

    def set(self, path: str, uj: int) -> None:
        (self.root / path / "energy_uj").write_text(f"{uj}\n", encoding="ascii")

    def add(self, path: str, joules: float, seconds: float = 0.0) -> None:
        """Count on, around the end if need be, while time passes."""
        span_uj = int((self.root / path / "max_energy_range_uj").read_text(encoding="ascii"))
        value = int((self.root / path / "energy_uj").read_text(encoding="ascii"))
        self.set(path, (value + round(joules * 1e6)) % span_uj)
        self.time.awake_s += seconds


def server(root: Path) -> Tree:
    """Two packages with their parts, the platform's counter, and the second way to a package."""
    tree = Tree(root)
    (root / "intel-rapl").mkdir(parents=True)
    for number in (0, 1):
        tree.zone(f"intel-rapl:{number}", f"package-{number}")
        tree.zone(f"intel-rapl:{number}:0", "core")
        tree.zone(f"intel-rapl:{number}:1", "uncore")
        tree.zone(f"intel-rapl:{number}:2", "dram")
    tree.zone("intel-rapl:2", "psys")
    tree.zone("intel-rapl-mmio:0", "package-0")
    return tree
