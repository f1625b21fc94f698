"""docs/api.md against the package: every public name, no other, and what it says holds."""

import inspect
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import legato_rt as lrt
from legato_rt.cli import app
from legato_rt.settings import Settings

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "api.md").read_text(encoding="utf-8")


def tables(heading: str) -> list[str]:
    """Return the first cells of all tables with this heading in their first column."""
    cells = []
    inside = False
    for line in PAGE.splitlines():
        if not line.startswith("|"):
            inside = False
        elif re.match(rf"\| {heading} \|", line):
            inside = True
        elif inside and not line.startswith("|---"):
            cells.append(line.split("|")[1].strip())
    return cells


def documented_names() -> list[str]:
    return [cell.strip("`") for cell in tables("name")]


def test_the_page_lists_all_and_nothing_else() -> None:
    assert sorted(documented_names()) == sorted(lrt.__all__)


def test_every_setting_of_the_runtime_is_listed() -> None:
    listed = [cell.strip("`") for cell in tables("parameter")]
    assert listed == list(inspect.signature(lrt.Runtime).parameters)
    assert set(listed) - {"validate"} == set(Settings.__dataclass_fields__)


def test_the_stated_defaults_are_true() -> None:
    defaults = Settings()
    stated = re.findall(r"^\| `(\w+)` \| `([^`]+)` \|", PAGE, re.MULTILINE)
    assert len(stated) >= 5
    for name, value in stated:
        assert repr(getattr(defaults, name, False)) == value.replace('"', "'")


def test_every_attribute_that_is_named_exists() -> None:
    named = re.findall(r"`(\w+)\.(\w+)", PAGE)
    of_the_face: list[tuple[Any, str]] = [
        (getattr(lrt, owner), name) for owner, name in named if owner in lrt.__all__
    ]
    assert len(of_the_face) > 10
    assert [name for owner, name in of_the_face if not hasattr(owner, name)] == []


@pytest.mark.parametrize("owner", ["Task", "Future", "Runtime"])
def test_methods_are_listed_once(owner: str) -> None:
    rows = Counter(cell for cell in tables("method") if cell.startswith(f"`{owner}."))
    assert rows
    assert set(rows.values()) == {1}


def test_errors_are_in_the_section_of_errors() -> None:
    section = PAGE.partition("## Errors")[2].partition("## Command")[0]
    listed = set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))
    errors = {
        name
        for name in lrt.__all__
        if isinstance(getattr(lrt, name), type) and issubclass(getattr(lrt, name), Exception)
    }
    assert listed == errors


def test_every_command_is_listed() -> None:
    callbacks = [command.callback for command in app.registered_commands]
    names = {callback.__name__ for callback in callbacks if callback is not None}
    assert {cell.strip("`") for cell in tables("command")} == {
        "legato --version",
        *(f"legato {name}" for name in names),
    }


def test_the_program_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(program, "docs/api.md", "exec"), {"__name__": "docs_api"})
    assert "5 tasks in" in capsys.readouterr().out
