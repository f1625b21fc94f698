"""Settings: argument, then ``LEGATO_RT_<NAME>``, then ``legato_rt.toml``, then default.

The file is looked for in the working directory and holds the same names at its top level.
"""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from legato_rt.errors import SettingError

FILE = "legato_rt.toml"


@dataclass(frozen=True, slots=True)
class Settings:
    """Checked values of the settings that a `Runtime` has; see there for what they mean."""

    workers: int | None = None
    devices: tuple[str, ...] | None = None
    policy: str | None = None
    executor: str = "threads"
    reproducible: bool = False
    strict: bool = False
    trace: bool = False
    memory_limit: int | None = None
    objective: str = "time"
    power_cap_w: float | None = None
    costs: str = "auto"

    @classmethod
    def load(cls, **given: Any) -> Settings:
        """Settle every setting; `None` in ``given`` means not given.

        Raises
        ------
        SettingError
            Naming the value that cannot be used and where it comes from.
        """
        from_file = _read_file(Path(FILE))
        values: dict[str, Any] = {}
        for field in fields(cls):
            name = field.name
            variable = f"LEGATO_RT_{name.upper()}"
            if given.get(name) is not None:
                values[name] = _check(name, given[name], f"Runtime({name}=…)")
            elif os.environ.get(variable):
                values[name] = _parse(name, os.environ[variable], variable)
            elif name in from_file:
                values[name] = _check(name, from_file[name], f"{name} in {FILE}")
        return cls(**values)


_FLAGS = {"reproducible", "strict", "trace"}
_TRUTH = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


def _read_file(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"{path.resolve()} cannot be read: {error}") from error
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingError(f"{path.resolve()} is not valid TOML: {error}") from error
    known = {field.name for field in fields(Settings)}
    unknown = sorted(set(content) - known)
    if unknown:
        raise SettingError(
            f"{path.resolve()}: unknown setting {unknown[0]!r}; "
            f"known are {', '.join(sorted(known))}"
        )
    return content


def _parse(name: str, text: str, source: str) -> Any:
    if name == "workers":
        if not re.fullmatch(r"-?\d+", text):
            raise SettingError(f"{source}={text!r}: a whole number of workers is needed")
        return _check(name, int(text), source)
    if name == "power_cap_w":
        try:
            number = float(text)
        except ValueError as error:
            raise SettingError(f"{source}={text!r}: a number of watts is needed") from error
        return _check(name, number, source)
    if name in _FLAGS:
        if text.lower() not in _TRUTH:
            raise SettingError(f"{source}={text!r}: 1 or 0 is needed")
        return _TRUTH[text.lower()]
    return _check(name, text, source)


def _bytes(text: str, source: str) -> int:
    match = re.fullmatch(r"\s*(\d+)\s*([KMGT]i?)?B?\s*", text, re.IGNORECASE)
    if match is None:
        raise SettingError(f"{source}={text!r}: bytes are needed, for instance 512MiB")
    prefix = (match[2] or "").upper()
    factor = 1024 if prefix.endswith("I") else 1000
    exponent = " KMGT".index(prefix[:1] or " ")
    return int(match[1]) * int(factor**exponent)


def _check(name: str, value: Any, source: str) -> Any:
    if name == "memory_limit":
        nbytes = _bytes(value, source) if isinstance(value, str) else value
        if isinstance(nbytes, bool) or not isinstance(nbytes, int) or nbytes < 1:
            raise SettingError(f"{source}: memory_limit is a number of bytes, not {value!r}")
        return nbytes
    if name == "workers":
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 4096:
            raise SettingError(f"{source}: workers is a whole number from 1 to 4096, not {value!r}")
    elif name == "power_cap_w":
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
            raise SettingError(f"{source}: power_cap_w is a number of watts, not {value!r}")
        return float(value)
    elif name == "devices":
        names = value.split(",") if isinstance(value, str) else list(value)
        if not names or not all(isinstance(n, str) and n.strip() for n in names):
            raise SettingError(f"{source}: devices are names or kinds, not {value!r}")
        return tuple(n.strip() for n in names)
    elif name in _FLAGS:
        if not isinstance(value, bool):
            raise SettingError(f"{source}: {name} is true or false, not {value!r}")
    elif not isinstance(value, str):
        raise SettingError(f"{source}: {name} is a name, not {value!r}")
    return value
