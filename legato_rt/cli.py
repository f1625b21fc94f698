"""The command ``legato``: what there is to run on, which policies, and running an application.

Exit codes are 0, 1 where the application failed, 2 for a wrong command line; an application's own
exit code is passed on.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import json
import os
import runpy
import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table

import legato_rt
from legato_rt.backend import backends
from legato_rt.devicebench import DeviceSpeed, device_speed
from legato_rt.errors import SettingError
from legato_rt.machine import Device, Machine
from legato_rt.metering import Meters, meter_drivers
from legato_rt.policy import POLICIES

FAILED, USAGE, INTERRUPTED = 1, 2, 130

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Run Python functions as a task graph on the devices that are there.",
)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    app(args=None if argv is None else list(argv), prog_name="legato")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"legato_rt {legato_rt.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """What is common to all commands."""


# -- what there is ------------------------------------------------------------------------------


@app.command()
def devices(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    bench: Annotated[bool, typer.Option(help="Measure how fast each copies and computes.")] = False,
) -> None:
    """Show the devices of this machine and its meters, and what keeps others from being used."""
    try:
        found = Machine.discover().devices
        problems = {kind: list(driver.problems()) for kind, driver in backends().items()}
        meters = _meters(found)
        unmetered = {driver.name: list(driver.problems()) for driver in meter_drivers()}
    except SettingError as error:
        _quit(str(error), FAILED)
    speeds = _speeds(found) if bench else {}
    if as_json:
        shown = {
            "devices": [_as_json(d, speeds.get(d.name)) for d in found],
            "problems": problems,
            "meters": meters,
            "meter_problems": unmetered,
        }
        typer.echo(json.dumps(shown, indent=2))
        return
    rows = [(d.name, d.kind, str(d.workers), _detail(d)) for d in found]
    _print_table(("device", "kind", "workers", "detail"), rows)
    if bench:
        _print_speeds(speeds)
    for kind in sorted(problems):
        for problem in problems[kind]:
            typer.echo(f"{kind}: {problem}")
    for name, covered in meters.items():
        typer.echo(f"meter {name}: measures {', '.join(covered)}")
    for name, texts in unmetered.items():
        for text in texts:
            typer.echo(f"meter {name}: {text}")


def _meters(found: Sequence[Device]) -> dict[str, list[str]]:
    """The meters that count now, with the devices that they cover."""
    meters = Meters.open(found)
    meters.close()
    return {m.meter: list(m.devices) for m in meters.measurements() if m.devices}


def _speeds(found: Sequence[Device]) -> dict[str, DeviceSpeed]:
    """What each device does with the kernel `gemm`, if that is installed."""
    product = next((s.task for s in _samples() if s.task.name == "gemm"), None)
    return {device.name: device_speed(device, product) for device in found}


def _print_speeds(speeds: Mapping[str, DeviceSpeed]) -> None:
    def shown(rate: float | None) -> str:
        return "" if rate is None else f"{rate:.3g}"

    headings = ("device", "upload GB/s", "download GB/s", "GFLOP/s", "product", "")
    rows = [
        (
            name,
            *(shown(rate) for rate in (s.upload_gb_s, s.download_gb_s, s.gflop_s)),
            s.error or s.product,
            s.label,
        )
        for name, s in speeds.items()
    ]
    _print_table(headings, rows)


def _as_json(device: Device, speed: DeviceSpeed | None = None) -> dict[str, Any]:
    measured = {} if speed is None else {"bench": dataclasses.asdict(speed)}
    return {
        "name": device.name,
        "kind": device.kind,
        "accepts": list(device.accepts),
        "workers": device.workers,
        "detail": device.detail,
        "simulated": device.simulated,
        **measured,
    }


def _detail(device: Device) -> str:
    if not device.simulated:
        return device.detail
    return f"simulated, used only when asked for: {device.detail}"


@app.command()
def policies() -> None:
    """Show the policies that decide which ready task a worker gets."""
    names = sorted(POLICIES)
    _print_table(("policy", ""), [(name, _summary(POLICIES[name])) for name in names])


def _summary(documented: type) -> str:
    return (documented.__doc__ or "").strip().partition("\n")[0]


def _print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*row)
    # What reads a pipe or a file gets a line for each row, however long.
    console = Console(width=None if sys.stdout.isatty() else 1000, markup=False, highlight=False)
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        typer.echo(line.rstrip())


@app.command()
def check(
    kernel: Annotated[
        str | None, typer.Argument(help="Name of a kernel; all by default.", show_default=False)
    ] = None,
    devices: Annotated[
        str | None, typer.Option(help="Names or kinds of devices; all real ones by default.")
    ] = None,
) -> None:
    """Run all variants of the kernels and compare them with their references."""
    samples = [s for s in _samples() if kernel in (None, s.task.name)]
    if not samples:
        names = ", ".join(sorted(s.task.name for s in _samples()))
        _quit(f"no kernel {kernel!r}; there are {names}", USAGE)
    failed = 0
    for sample in samples:
        calls = [sample.arguments(dtype) for dtype in ("float32", "float64")]
        try:
            found = legato_rt.check(sample.task, calls, devices)
        except SettingError as error:
            _quit(str(error), USAGE)
        failed += sum(not comparison.ok for comparison in found)
        for comparison in found:
            typer.echo(str(comparison))
    if failed:
        _quit(f"{failed} variants do not agree with their references", FAILED)


def _samples() -> list[Any]:
    """Samples of all installed kernel packages: entry points of the group ``legato_rt.kernels``."""
    found: list[Any] = []
    for entry in metadata.entry_points(group="legato_rt.kernels"):
        found += importlib.import_module(f"{entry.value}.samples").SAMPLES
    return found


# -- running an application ---------------------------------------------------------------------


class _NotFound(Exception):
    """What should be run is not there."""


@app.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
def run(
    target: Annotated[
        str,
        typer.Argument(
            metavar="PATH_OR_MODULE",
            help="A .py file, a folder with __main__.py, or a dotted module.",
            show_default=False,
        ),
    ],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="ARGS", help="Passed on untouched.", show_default=False),
    ] = None,
) -> None:
    """Run an application."""
    sys.argv = [target, *(arguments or ())]
    try:
        _run(target)
    except _NotFound as error:
        _quit(str(error), USAGE)
    except SystemExit:
        raise
    except KeyboardInterrupt:
        _quit("interrupted", INTERRUPTED)
    except BaseException as error:
        _print_error(error)
        raise SystemExit(FAILED) from None


def _run(target: str) -> None:
    path = Path(target)
    if path.is_dir():
        _run_folder(path)
    elif path.is_file():
        sys.path.insert(0, str(path.resolve().parent))
        runpy.run_path(str(path), run_name="__main__")
    elif path.suffix == ".py" or os.sep in target or not _is_dotted(target):
        raise _NotFound(f"{target} does not exist")
    else:
        sys.path.insert(0, os.getcwd())
        _run_module(target)


def _run_folder(folder: Path) -> None:
    """Run a folder as the package it is, from the folder that its outermost package lies in."""
    if not (folder / "__main__.py").is_file():
        raise _NotFound(f"{folder} has no __main__.py")
    folder = folder.resolve()
    parts = [folder.name]
    above = folder.parent
    while (above / "__init__.py").is_file():
        parts.insert(0, above.name)
        above = above.parent
    name = ".".join(parts)
    if not _is_dotted(name):
        runpy.run_path(str(folder), run_name="__main__")
        return
    sys.path.insert(0, str(above))
    importlib.invalidate_caches()
    spec = importlib.util.find_spec(name)
    places = spec.submodule_search_locations if spec is not None else None
    if not any(Path(place).resolve() == folder for place in places or ()):
        raise _NotFound(f"{folder} cannot be run: another module has its name, {name}")
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def _run_module(name: str) -> None:
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            main_module = importlib.util.find_spec(f"{name}.__main__")
            if main_module is None:
                raise _NotFound(f"the package {name} has no __main__.py")
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        spec = None
    if spec is None:
        raise _NotFound(f"there is neither a file nor a module {name}")
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def _is_dotted(name: str) -> bool:
    return all(part.isidentifier() for part in name.split("."))


_MACHINERY = {__file__, runpy.__file__, runpy.run_path.__code__.co_filename}


def _print_error(error: BaseException) -> None:
    """Print a traceback that begins in the application."""
    traceback.print_exception(error.with_traceback(_of_application(error.__traceback__)))


def _of_application(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if name not in _MACHINERY and not name.startswith("<frozen "):
            break
        trace = trace.tb_next
    return trace


def _quit(message: str, code: int) -> NoReturn:
    typer.echo(f"legato: {message}", err=True)
    raise SystemExit(code)
