"""The programs on docs/energy.md run, and what the page says of meters is so."""

import re
from pathlib import Path
from typing import Any

from legato_rt.devices import counters, nvml, rapl
from legato_rt.metering import GROUP

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "energy.md").read_text(encoding="utf-8")


def test_the_programs_run(capsys: Any) -> None:
    names: dict[str, Any] = {"__name__": "docs_energy"}
    programs = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(programs) == 2
    for program in programs:
        exec(compile(program, "docs/energy.md", "exec"), names)
    assert "8 tasks in" in capsys.readouterr().out


def test_names_and_numbers_are_those_of_the_code() -> None:
    assert f'[project.entry-points."{GROUP}"]' in PAGE
    assert f"`{rapl.VARIABLE}`" in PAGE
    assert f"`{rapl.ROOT}`" in PAGE
    assert counters.STALL_S == 2.0
    assert "stands still for two seconds" in PAGE
    assert nvml.PERIOD_S == 0.1
    assert "ten times a second" in PAGE
    assert nvml.GAP_S == 5.0
    assert "not sampled for five seconds" in PAGE
    counter = counters.Counter("", lambda: 0, rapl.MICROJOULE, 262_143_328_850)
    assert counter.period_s == 10.0
    assert "every ten seconds" in PAGE
