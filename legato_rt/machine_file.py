"""The file format of machine descriptions: TOML, every field checked.

::

    name = "board"
    detail = "an example"

    [[device]]
    name = "gpu"            # with count = 2: gpu:0 and gpu:1
    kind = "cuda"
    workers = 1
    active_w = 225.0        # watts of one worker at work, what it draws when idle included
    idle_w = 60.0
    [device.sources]
    active_w = "the vendor's data sheet"

    [[device.point]]        # what it can be set to; the first is what its times are for
    name = "nominal"

    [[device.point]]
    name = "slow"
    speed = 0.87            # factor of the first point's
    power = 0.70            # factor of active_w; or active_w = 157.5
    source = "measured"

    [[link]]                # between memories; a device's own has its name, a CPU's is "host"
    from = "host"
    to = "gpu:0"
    both_ways = true
    bytes_per_s = 6.0e9
    latency_s = 1.0e-5
    source = "measured"
"""

from __future__ import annotations

import importlib.resources
import os
import tomllib
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct, field

from legato_rt.errors import FormatError
from legato_rt.files import as_text, convert, read_bytes

MAX_BYTES = 2**20

Name = Annotated[str, Meta(min_length=1, max_length=200)]
Positive = Annotated[float, Meta(gt=0, le=1e30)]
Amount = Annotated[float, Meta(ge=0, le=1e30)]
Count = Annotated[int, Meta(ge=1, le=65536)]
Bytes = Annotated[int, Meta(ge=1)]


class PointEntry(Struct, forbid_unknown_fields=True):
    """An operating point of a device."""

    name: Name
    speed: Positive = 1.0
    power: Positive = 1.0
    active_w: Positive | None = None
    frequency_hz: Positive | None = None
    source: str = ""


class DeviceEntry(Struct, forbid_unknown_fields=True):
    """A device, or ``count`` equal ones."""

    name: Name
    kind: Name
    workers: Count
    active_w: Amount
    idle_w: Amount
    accepts: list[Name] = []
    count: Count | None = None
    detail: str = ""
    simulated: bool = False
    memory: str = ""
    memory_bytes: Bytes | None = None
    cores: Count | None = None
    flops_per_s: Positive | None = None
    costs: str = ""
    sources: dict[str, str] = {}
    point: list[PointEntry] = []


class LinkEntry(Struct, forbid_unknown_fields=True):
    """A link between two memories, in one direction or both."""

    origin: Name = field(name="from")
    target: Name = field(name="to")
    bytes_per_s: Positive
    latency_s: Amount
    joules_per_byte: Amount | None = None
    both_ways: bool = False
    source: str = ""


class MachineFile(Struct, forbid_unknown_fields=True):
    """A whole file."""

    name: Name
    device: Annotated[list[DeviceEntry], Meta(min_length=1)]
    detail: str = ""
    link: list[LinkEntry] = []


def read_machine(path_or_name: str | Path) -> MachineFile:
    """Read a description, from a file or by the name of one that ships with the package.

    Raises
    ------
    FormatError
        Naming the file, and the line or field in it.
    """
    path = _locate(path_or_name)
    text = as_text(path, read_bytes(path, MAX_BYTES))
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FormatError(path, "", f"is not valid TOML: {error}") from None
    machine = convert(path, content, MachineFile)
    _check(path, machine)
    return machine


def shipped() -> list[str]:
    """Names of the descriptions that ship with the package."""
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in _folder().iterdir()
        if entry.name.endswith(".toml")
    )


def _folder() -> Path:
    return Path(str(importlib.resources.files("legato_rt") / "machines"))


def _locate(path_or_name: str | Path) -> Path:
    path = Path(path_or_name)
    if isinstance(path_or_name, Path) or path.suffix == ".toml" or os.sep in path_or_name:
        return path
    if path_or_name not in shipped():
        there = ", ".join(shipped())
        raise FormatError(path_or_name, "", f"no such machine ships; there is {there}")
    return _folder() / f"{path_or_name}.toml"


def _check(path: Path, machine: MachineFile) -> None:
    names: set[str] = set()
    memories = {"host"}
    for at, device in enumerate(machine.device):
        numbers = range(device.count or 0)
        own = [f"{device.name}:{n}" for n in numbers] or [device.name]
        if names & set(own):
            raise FormatError(path, f"device[{at}].name", f"{device.name!r} is there twice")
        names.update(own)
        if device.memory or device.kind != "cpu":
            memories.update([device.memory] if device.memory else own)
        points = [point.name for point in device.point]
        if len(set(points)) < len(points):
            raise FormatError(path, f"device[{at}].point", "two points have one name")
        if device.point and device.point[0].speed != 1.0:
            raise FormatError(path, f"device[{at}].point[0].speed", "the first point's is 1")
        if device.idle_w > device.active_w:
            raise FormatError(path, f"device[{at}].idle_w", "is more than active_w")
    for at, link in enumerate(machine.link):
        for end in (link.origin, link.target):
            if end not in memories:
                there = ", ".join(sorted(memories))
                raise FormatError(path, f"link[{at}]", f"no memory {end!r}; there is {there}")
