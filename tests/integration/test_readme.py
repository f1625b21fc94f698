"""The README's programs run as they stand there."""

import re
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[2] / "README.md"
PROGRAMS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def test_there_are_programs() -> None:
    assert len(PROGRAMS) == 2


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_runs(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(program, str(README), "exec"), {"__name__": "readme"})
    assert "tasks in" in capsys.readouterr().out
