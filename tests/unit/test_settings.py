"""Settings: which of their sources wins, and what is refused with its source named."""

import itertools
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import legato_rt as lrt
from legato_rt.settings import Settings

# name: a value other than the default, and how the environment spells it.
OTHER: dict[str, tuple[Any, str]] = {
    "workers": (3, "3"),
    "devices": (("cpu", "simulated"), "cpu, simulated"),
    "policy": ("fifo", "fifo"),
    "executor": ("serial", "serial"),
    "reproducible": (True, "1"),
    "strict": (True, "yes"),
    "trace": (True, "True"),
    "memory_limit": (512 << 20, "512MiB"),
    "objective": ("energy", "energy"),
    "power_cap_w": (120.5, "120.5"),
    "costs": ("costs.json", "costs.json"),
}
NAMES = [field.name for field in fields(Settings)]


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder, without variables."""
    monkeypatch.chdir(tmp_path)
    for name in NAMES:
        monkeypatch.delenv(f"LEGATO_RT_{name.upper()}", raising=False)
    return tmp_path


def in_file(**values: Any) -> None:
    lines = []
    for name, value in values.items():
        shown = {True: "true", False: "false"}.get(value) if isinstance(value, bool) else None
        shown = shown or (repr(list(value)) if isinstance(value, tuple) else repr(value))
        lines.append(f"{name} = {shown}\n")
    Path("legato_rt.toml").write_text("".join(lines), encoding="utf-8")


def test_every_setting_is_tried() -> None:
    assert sorted(OTHER) == sorted(NAMES)


def test_defaults() -> None:
    assert Settings.load() == Settings()


@pytest.mark.parametrize("name", NAMES)
def test_each_source_is_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    value, spelt = OTHER[name]
    assert getattr(Settings.load(**{name: value}), name) == value
    in_file(**{name: value})
    assert getattr(Settings.load(), name) == value
    Path("legato_rt.toml").unlink()
    monkeypatch.setenv(f"LEGATO_RT_{name.upper()}", spelt)
    assert getattr(Settings.load(), name) == value


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("7", 7),
        ("2kB", 2000),
        ("2 KiB", 2048),
        ("3mib", 3 << 20),
        ("1GB", 10**9),
        ("1TiB", 1 << 40),
    ],
)
def test_bytes_are_spelt_with_their_unit(text: str, nbytes: int) -> None:
    assert Settings.load(memory_limit=text).memory_limit == nbytes


@pytest.mark.parametrize("sources", list(itertools.product([True, False], repeat=3)))
def test_argument_before_variable_before_file(
    sources: tuple[bool, bool, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    by_argument, by_variable, by_file = sources
    if by_file:
        in_file(workers=1)
    if by_variable:
        monkeypatch.setenv("LEGATO_RT_WORKERS", "2")
    settings = Settings.load(workers=3 if by_argument else None)
    expected = 3 if by_argument else 2 if by_variable else 1 if by_file else None
    assert settings.workers == expected


@pytest.mark.parametrize("name", ["reproducible", "strict", "trace"])
def test_a_flag_can_be_taken_back(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    in_file(**{name: True})
    assert getattr(Settings.load(**{name: False}), name) is False
    monkeypatch.setenv(f"LEGATO_RT_{name.upper()}", "0")
    assert getattr(Settings.load(), name) is False


def test_an_empty_variable_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    in_file(workers=1)
    monkeypatch.setenv("LEGATO_RT_WORKERS", "")
    assert Settings.load().workers == 1


def test_the_runtime_obeys_them(monkeypatch: pytest.MonkeyPatch) -> None:
    in_file(workers=3, executor="serial", trace=True)
    monkeypatch.setenv("LEGATO_RT_TRACE", "0")
    with lrt.Runtime(workers=2, devices="cpu") as runtime:
        assert [device.workers for device in runtime.report().devices] == [2]
        with pytest.raises(lrt.UsageError, match="trace=True"):
            _ = runtime.trace


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"workers": 0}, r"Runtime\(workers=…\): workers is a whole number from 1 to 4096"),
        ({"workers": 4097}, "from 1 to 4096, not 4097"),
        ({"workers": True}, "not True"),
        ({"workers": 2.0}, r"not 2\.0"),
        ({"devices": []}, "devices are names or kinds"),
        ({"devices": ["cpu", 3]}, "devices are names or kinds"),
        ({"devices": "cpu,,cpu"}, "devices are names or kinds"),
        ({"devices": ""}, "devices are names or kinds"),
        ({"policy": 3}, r"Runtime\(policy=…\): policy is a name, not 3"),
        ({"executor": b"serial"}, "executor is a name"),
        ({"strict": 1}, r"Runtime\(strict=…\): strict is true or false, not 1"),
        ({"memory_limit": 0}, "memory_limit is a number of bytes, not 0"),
        ({"memory_limit": "much"}, "'much': bytes are needed"),
    ],
)
def test_an_argument_that_cannot_be_used(given: dict[str, Any], message: str) -> None:
    with pytest.raises(lrt.SettingError, match=message):
        Settings.load(**given)
    with pytest.raises(ValueError, match=message):
        Settings.load(**given)


@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [
        ("LEGATO_RT_WORKERS", "two", "LEGATO_RT_WORKERS='two': a whole number"),
        ("LEGATO_RT_WORKERS", "0", "LEGATO_RT_WORKERS"),
        ("LEGATO_RT_STRICT", "maybe", "LEGATO_RT_STRICT='maybe': 1 or 0"),
        ("LEGATO_RT_DEVICES", ",", "LEGATO_RT_DEVICES: devices are names"),
    ],
)
def test_a_variable_that_cannot_be_used(
    variable: str, text: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, text)
    with pytest.raises(lrt.SettingError, match=message):
        Settings.load()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("workers = 'two'", r"workers in legato_rt\.toml: workers is a whole number"),
        ("strict = 1", r"strict in legato_rt\.toml"),
        ("worker = 2", "unknown setting 'worker'; known are costs, devices, executor"),
        ("workers = ", "is not valid TOML"),
        ("[table]\nworkers = 2", "unknown setting 'table'"),
    ],
)
def test_a_file_that_cannot_be_used(text: str, message: str) -> None:
    Path("legato_rt.toml").write_text(text, encoding="utf-8")
    with pytest.raises(lrt.SettingError, match=message):
        Settings.load()


def test_a_file_that_cannot_be_read_is_named(alone: Path) -> None:
    (alone / "legato_rt.toml").mkdir()
    with pytest.raises(lrt.SettingError, match=f"{alone}.*cannot be read"):
        Settings.load()
    (alone / "legato_rt.toml").rmdir()
    (alone / "legato_rt.toml").write_bytes(b"policy = '\xff'")
    with pytest.raises(lrt.SettingError, match=f"{alone}.*cannot be read"):
        Settings.load()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"policy": "none"}, r"policy 'none' is none of .*fifo.*steal"),
        ({"executor": "none"}, r"executor 'none' is none of serial.*threads"),
        ({"devices": "none"}, "no device 'none': there are drivers for cpu"),
    ],
)
def test_a_name_that_is_unknown_is_refused_with_those_that_are(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(lrt.SettingError, match=message):
        lrt.Runtime(**given)
