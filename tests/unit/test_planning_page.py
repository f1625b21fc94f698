"""The program on docs/planning.md runs, and what the page says of machines is so."""

import re
from pathlib import Path

from legato_rt import Machine, machine_file

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "planning.md").read_text(encoding="utf-8")


def test_the_program_runs() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(program, {"__name__": "planning"})


def test_the_machines_and_fields_are_all_there() -> None:
    assert all(f"`{name}`" in PAGE for name in Machine.shipped())
    for entry in (machine_file.DeviceEntry, machine_file.PointEntry, machine_file.LinkEntry):
        for name in entry.__struct_encode_fields__:
            assert f"`{name}`" in PAGE or name == "point"
