"""The command `legato`, run as users run it: what it shows, what it runs, how it exits."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import legato_rt
from legato_rt.policy import POLICIES
from tests.helpers.powercap import server

HEAVY = {"bokeh", "cupy", "distributed", "numba", "pyopencl", "scipy"}

SHOW = """
import sys
print(__name__, sys.argv[1:])
"""


def legato(*args: object, cwd: Path, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = shutil.which("legato", path=str(Path(sys.executable).parent))
    assert command is not None, "the package is not installed with its command"
    env = dict(os.environ)
    if path is not None:
        env["PYTHONPATH"] = str(path)
    return subprocess.run(
        [command, *map(str, args)], cwd=cwd, env=env, capture_output=True, text=True
    )


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def assert_refused(run: subprocess.CompletedProcess[str], message: str) -> None:
    assert run.returncode == 2
    assert run.stderr == f"legato: {message}\n"
    assert run.stdout == ""


# -- what there is ------------------------------------------------------------------------------


def test_version(tmp_path: Path) -> None:
    run = legato("--version", cwd=tmp_path)
    assert (run.returncode, run.stdout) == (0, f"legato_rt {legato_rt.__version__}\n")


def test_devices_labels_what_is_simulated(tmp_path: Path) -> None:
    run = legato("devices", cwd=tmp_path)
    assert run.returncode == 0
    heading, *lines = run.stdout.splitlines()
    assert heading.split() == ["device", "kind", "workers", "detail"]
    rows = {line.split()[0]: line for line in lines}
    assert rows["cpu"].split()[1:3] == ["cpu", str(len(os.sched_getaffinity(0)))]
    assert "simulated, used only when asked for" in rows["simulated"]
    assert "simulated" not in rows["cpu"]


def test_devices_as_json(tmp_path: Path) -> None:
    run = legato("devices", "--json", cwd=tmp_path)
    assert run.returncode == 0
    shown = json.loads(run.stdout)
    by_name = {device["name"]: device for device in shown["devices"]}
    assert by_name["cpu"]["simulated"] is False
    assert by_name["cpu"]["workers"] >= 1
    assert by_name["simulated"]["simulated"] is True
    assert shown["problems"].keys() >= {"cpu", "simulated"}
    assert shown["problems"]["cpu"] == []


def test_devices_shows_meters_and_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = tmp_path / "none"
    monkeypatch.setenv("LEGATO_RT_POWERCAP", str(missing))
    lines = legato("devices", cwd=tmp_path).stdout.splitlines()
    (line,) = (line for line in lines if line.startswith("meter rapl: "))
    assert f"no {missing}" in line
    monkeypatch.setenv("LEGATO_RT_POWERCAP", str(server(tmp_path / "powercap").root))
    lines = legato("devices", cwd=tmp_path).stdout.splitlines()
    (line,) = (line for line in lines if line.startswith("meter rapl: "))
    assert line.startswith("meter rapl: measures cpu")
    shown = json.loads(legato("devices", "--json", cwd=tmp_path).stdout)
    assert "cpu" in shown["meters"]["rapl"]
    assert shown["meter_problems"]["rapl"] == []
    assert all("install" in text or "must" in text for text in shown["meter_problems"]["nvml"])


def test_devices_are_measured_and_labelled(tmp_path: Path) -> None:
    run = legato("devices", "--bench", "--json", cwd=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    devices = {device["name"]: device for device in json.loads(run.stdout)["devices"]}
    for device in devices.values():
        assert device["bench"]["label"] == ("simulated" if device["simulated"] else "measured")
        assert device["bench"]["error"] == ""
    cpu, null = devices["cpu"]["bench"], devices["null"]["bench"]
    assert cpu["upload_gb_s"] is None  # its memory is the host's
    assert cpu["gflop_s"] > 0
    assert "float32" in cpu["product"]
    assert min(null["upload_gb_s"], null["download_gb_s"]) > 0
    assert null["gflop_s"] is None  # no kernel has a variant for it
    for device in devices.values():
        if device["kind"] == "opencl":
            assert device["bench"]["gflop_s"] > 0
            assert device["bench"]["upload_gb_s"] > 0


def test_a_device_that_fails_is_shown_with_what_it_says(tmp_path: Path) -> None:
    install_driver(
        tmp_path,
        "from legato_rt.energy import ConstantPower\n"
        "from legato_rt.errors import DeviceError\n"
        "from legato_rt.machine import Device\n"
        "class Backend:\n"
        "    kind = 'lab'\n"
        "    runs = ('lab',)\n"
        "    def discover(self):\n"
        "        return [Device('lab', 'lab', ('lab',), 1, ConstantPower(1.0, 0.5))]\n"
        "    def problems(self): return []\n"
        "    def open(self, device): raise DeviceError('the card is upside down')\n"
        "backend = Backend()\n",
    )
    run = legato("devices", "--bench", cwd=tmp_path, path=tmp_path)
    assert run.returncode == 0
    (line,) = (text for text in run.stdout.splitlines() if "upside down" in text)
    assert re.fullmatch(r"lab +the card is upside down +failed *", line)


def install_driver(folder: Path, source: str) -> None:
    """Put a distribution with a device driver into a folder."""
    write(folder / "lab_driver.py", source)
    info = folder / "lab_driver-1.0.dist-info"
    write(info / "METADATA", "Metadata-Version: 2.1\nName: lab-driver\nVersion: 1.0\n")
    write(info / "entry_points.txt", "[legato_rt.backends]\nlab = lab_driver:backend\n")


def test_devices_says_what_is_wrong_with_a_driver(tmp_path: Path) -> None:
    install_driver(
        tmp_path,
        "class Backend:\n"
        "    kind = 'lab'\n"
        "    runs = ('lab',)\n"
        "    def discover(self): return []\n"
        "    def problems(self): return ['no card found: push it in']\n"
        "    def open(self, device): raise AssertionError\n"
        "backend = Backend()\n",
    )
    run = legato("devices", cwd=tmp_path, path=tmp_path)
    assert run.returncode == 0
    assert "lab: no card found: push it in" in run.stdout.splitlines()
    as_json = json.loads(legato("devices", "--json", cwd=tmp_path, path=tmp_path).stdout)
    assert as_json["problems"]["lab"] == ["no card found: push it in"]


def test_devices_names_a_driver_that_cannot_be_loaded(tmp_path: Path) -> None:
    install_driver(tmp_path, "raise OSError('libcard.so is missing')\n")
    run = legato("devices", cwd=tmp_path, path=tmp_path)
    assert run.returncode == 1
    assert run.stderr == (
        "legato: the device driver lab_driver:backend cannot be loaded: libcard.so is missing\n"
    )


def test_policies(tmp_path: Path) -> None:
    run = legato("policies", cwd=tmp_path)
    assert run.returncode == 0
    shown = dict(line.split(maxsplit=1) for line in run.stdout.splitlines()[1:])
    assert shown.keys() == POLICIES.keys()
    for name, policy in POLICIES.items():
        assert policy.__doc__ is not None
        assert policy.__doc__.startswith(shown[name])


@pytest.mark.parametrize("args", [["frobnicate"], ["run"], ["--frobnicate"], ["policies", "x"]])
def test_a_wrong_command_line(tmp_path: Path, args: list[str]) -> None:
    run = legato(*args, cwd=tmp_path)
    assert run.returncode == 2
    assert "Usage: legato" in run.stderr


def test_it_loads_nothing_heavy(tmp_path: Path) -> None:
    code = "import sys, legato_rt.cli; print(*{n.partition('.')[0] for n in sys.modules})"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert set(run.stdout.split()) & HEAVY == set()


# -- what it runs -------------------------------------------------------------------------------

ARGUMENTS = ["-x", "--help", "--version", "--", "--n=3", "a b", ""]


def test_a_script_gets_its_arguments_untouched(tmp_path: Path) -> None:
    write(tmp_path / "app.py", SHOW)
    run = legato("run", "app.py", *ARGUMENTS, cwd=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == f"__main__ {ARGUMENTS}\n"


def test_a_script_finds_the_modules_beside_it(tmp_path: Path) -> None:
    write(tmp_path / "apps" / "helper.py", "value = 5\n")
    script = write(tmp_path / "apps" / "app.py", "import helper\nprint(helper.value, __file__)\n")
    run = legato("run", "apps/app.py", cwd=tmp_path)
    assert run.stdout.split()[0] == "5"
    assert (tmp_path / run.stdout.split()[1]).resolve() == script.resolve()


@pytest.mark.parametrize("with_init", [True, False])
@pytest.mark.parametrize("target", ["apps/tune", "apps/tune/", "{tmp}/apps/tune", "apps.tune"])
def test_a_folder_is_run_as_a_package(tmp_path: Path, target: str, with_init: bool) -> None:
    folder = tmp_path / "apps" / "tune"
    if with_init:
        write(folder / "__init__.py")
    write(folder / "value.py", "value = 5\n")
    write(folder / "__main__.py", f"from .value import value\nprint(value)\n{SHOW}")
    run = legato("run", target.format(tmp=tmp_path), *ARGUMENTS, cwd=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == f"5\n__main__ {ARGUMENTS}\n"


def test_a_package_in_a_package_reaches_its_siblings(tmp_path: Path) -> None:
    write(tmp_path / "outer" / "__init__.py")
    write(tmp_path / "outer" / "value.py", "value = 5\n")
    write(tmp_path / "outer" / "inner" / "__init__.py")
    main = "from ..value import value\nprint(value)\n"
    write(tmp_path / "outer" / "inner" / "__main__.py", main)
    assert legato("run", "outer/inner", cwd=tmp_path).stdout == "5\n"
    assert legato("run", ".", cwd=tmp_path / "outer" / "inner").stdout == "5\n"


def test_a_folder_with_a_name_that_is_none_is_run(tmp_path: Path) -> None:
    write(tmp_path / "my-app" / "value.py", "value = 5\n")
    write(tmp_path / "my-app" / "__main__.py", "import value\nprint(value.value)\n")
    assert legato("run", "my-app", cwd=tmp_path).stdout == "5\n"


def test_a_module_is_run(tmp_path: Path) -> None:
    write(tmp_path / "app.py", SHOW)
    run = legato("run", "app", *ARGUMENTS, cwd=tmp_path)
    assert run.stdout == f"__main__ {ARGUMENTS}\n"


def test_what_is_not_there_is_a_wrong_command_line(tmp_path: Path) -> None:
    write(tmp_path / "empty" / "__init__.py")
    write(tmp_path / "numpy" / "__main__.py")
    for target, message in {
        "gone.py": "gone.py does not exist",
        "apps/gone": "apps/gone does not exist",
        "not-a-module": "not-a-module does not exist",
        "gone": "there is neither a file nor a module gone",
        "gone.too": "there is neither a file nor a module gone.too",
        "json.gone": "there is neither a file nor a module json.gone",
        "empty": "empty has no __main__.py",
        "xml.dom": "the package xml.dom has no __main__.py",
        "numpy": f"{tmp_path / 'numpy'} cannot be run: another module has its name, numpy",
    }.items():
        assert_refused(legato("run", target, cwd=tmp_path), message)


# -- how it exits -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "code", "stderr"),
    [
        ("sys.exit()", 0, ""),
        ("sys.exit(0)", 0, ""),
        ("sys.exit(7)", 7, ""),
        ("sys.exit('no data')", 1, "no data\n"),
        ("os.kill(os.getpid(), signal.SIGINT)", 130, "legato: interrupted\n"),
    ],
)
def test_an_application_has_its_own_exit_code(
    tmp_path: Path, statement: str, code: int, stderr: str
) -> None:
    write(tmp_path / "app.py", f"import os, signal, sys\n{statement}\n")
    run = legato("run", "app.py", cwd=tmp_path)
    assert (run.returncode, run.stderr) == (code, stderr)


FAILS = """
def divide():
    return 1 / 0

divide()
"""


@pytest.mark.parametrize("target", ["app/__main__.py", "app", "app.__main__"])
def test_a_traceback_begins_in_the_application(tmp_path: Path, target: str) -> None:
    write(tmp_path / "app" / "__main__.py", FAILS)
    run = legato("run", target, cwd=tmp_path)
    assert run.returncode == 1
    lines = run.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == "ZeroDivisionError: division by zero"
    files = re.findall(r'File "(.*)", line (\d+)', run.stderr)
    assert [line for _, line in files] == ["5", "3"]
    assert all(Path(name).name == "__main__.py" for name, _ in files)


def test_a_module_that_an_application_lacks_is_its_own_failure(tmp_path: Path) -> None:
    write(tmp_path / "app" / "__init__.py", "import gone\n")
    write(tmp_path / "app" / "__main__.py")
    for target in ("app", "app.__main__"):
        run = legato("run", target, cwd=tmp_path)
        assert run.returncode == 1
        assert run.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'gone'"
        assert run.stderr.count("File ") == 1


def test_a_script_that_is_no_python_shows_its_line(tmp_path: Path) -> None:
    write(tmp_path / "app.py", "x = = 1\n")
    run = legato("run", "app.py", cwd=tmp_path)
    assert run.returncode == 1
    assert re.findall(r'File "(?:.*/)?(.*)", line (\d+)', run.stderr) == [("app.py", "1")]
    assert "SyntaxError" in run.stderr


def test_a_failed_task_ends_the_application(tmp_path: Path) -> None:
    write(
        tmp_path / "app.py",
        "import legato_rt as lrt\n"
        "@lrt.task\n"
        "def divide(x): return 1 / x\n"
        "with lrt.Runtime(workers=1):\n"
        "    divide.submit(0)\n",
    )
    run = legato("run", "app.py", cwd=tmp_path)
    assert run.returncode == 1
    assert "ZeroDivisionError: division by zero" in run.stderr
    assert re.search(r"TaskError.*submitted at .*app\.py:5", run.stderr)
    assert "legato_rt/cli.py" not in run.stderr
