"""Public measurements that schedules are evaluated on, read from the folder ``$LEGATO_RT_DATA``.

Nothing of them is kept here.  `SOURCES` says where each is published, and so does the message of
`MissingData`, which every reader raises where the folder or a file is not there.
"""

from __future__ import annotations

import csv
import os
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from legato_rt import formats

VARIABLE = "LEGATO_RT_DATA"

SOURCES = {
    "starpu": "https://gitlab.inria.fr/starpu/starpu, tools/perfmodels",
    "rcpsp": "https://github.com/ScheduleOpt/benchmarks, RCPSP",
    "zeus": "https://github.com/SymbioticLab/Zeus, trace/",
    "dvfs": "https://github.com/hpc-ulisboa/gpuPTXModel and https://github.com/isu-rcl/cvBench",
    "workflows": "https://github.com/wfcommons/WfInstances",
    "power.csv": "the data sheets that legato_rt/machines/*.toml quote",
}

TILE = 960
"""Rows of a Cholesky tile, in single precision."""

CHOLESKY_TILES = {"potrf": 1, "trsm": 2, "syrk": 2, "gemm": 3}
"""How many tiles a task of each kind touches, which is what StarPU's footprint counts."""


class MissingData(Exception):
    """A file of public measurements is not there; the message says where it is published."""


@dataclass(frozen=True)
class Watts:
    """What a unit of a machine draws at an operating point, and how fast it is there."""

    active_w: float
    idle_w: float
    speed: float
    power: float


@dataclass(frozen=True)
class State:
    """What a job or kernel does at one setting: a cap in watts, or a pair of clocks."""

    seconds: float
    watts: float


def path(*parts: str) -> Path:
    """A file or folder of the measurements.

    Raises
    ------
    MissingData
        If it is not there.
    """
    source = SOURCES[parts[0]]
    folder = os.environ.get(VARIABLE)
    if not folder:
        wanted = "/".join(parts)
        raise MissingData(f"set {VARIABLE} to a folder with {wanted}, published at {source}")
    found = Path(folder, *parts)
    if not found.exists():
        raise MissingData(f"{found} is not there; it is published at {source}")
    return found


def _table(*parts: str) -> list[dict[str, str]]:
    with open(path(*parts), newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def watts(machine: str) -> dict[tuple[str, str], Watts]:
    """The table of watts: for each unit of a machine and operating point."""
    return {
        (row["unit"], row["operating_point"]): Watts(
            float(row["active_w"]),
            float(row["idle_w"]),
            float(row["speed_factor"]),
            float(row["power_factor"]),
        )
        for row in _table("power.csv")
        if row["machine"] == machine
    }


# -- Cholesky on StarPU's machines ---------------------------------------------------------------


def cholesky_seconds(machine: str, tile: int = TILE) -> dict[str, dict[str, float]]:
    """Seconds of each kind of task by device kind; for ``cuda`` the mean over the GPUs.

    Calibrated by StarPU on one core and on each GPU of ``mirage`` or ``sirocco``.
    """
    sizes = {kind: tiles * tile * tile * 4 for kind, tiles in CHOLESKY_TILES.items()}
    times: dict[str, dict[str, list[float]]] = {kind: {} for kind in sizes}
    for row in _table("starpu", "kernels.csv"):
        kind = row["kernel"].removeprefix("chol_model_")
        if row["machine"] == machine and kind in sizes and int(row["bytes"]) == sizes[kind]:
            unit = "cpu" if row["unit"].startswith("cpu") else "cuda"
            times[kind].setdefault(unit, []).append(float(row["mean_us"]) * 1e-6)
    return {
        kind: {unit: sum(values) / len(values) for unit, values in by_unit.items()}
        for kind, by_unit in times.items()
    }


def cholesky(n: int, tile: int = TILE) -> formats.GraphRecord:
    """The tasks of a tiled Cholesky factorisation of n × n tiles in single precision."""
    size = float(tile * tile * 4)
    tasks: list[formats.TaskRecord] = []
    writer: dict[str, int] = {}

    def add(kind: str, target: str, *inputs: str) -> None:
        touched = [*inputs, target]
        before = sorted({writer[name] for name in touched if name in writer})
        reads = tuple((name, size) for name in touched)
        name = f"{kind}({target})" if not inputs else f"{kind}({target};{','.join(inputs)})"
        record = formats.TaskRecord(name, kind, tuple(before), reads, ((target, size),))
        writer[target] = len(tasks)
        tasks.append(record)

    for k in range(n):
        add("potrf", f"{k},{k}")
        for i in range(k + 1, n):
            add("trsm", f"{i},{k}", f"{k},{k}")
        for i in range(k + 1, n):
            add("syrk", f"{i},{i}", f"{i},{k}")
            for j in range(k + 1, i):
                add("gemm", f"{i},{j}", f"{i},{k}", f"{j},{k}")
    return formats.GraphRecord(tuple(tasks), f"cholesky {n}")


# -- projects with limited resources -------------------------------------------------------------


def projects() -> Iterator[tuple[formats.GraphRecord, int]]:
    """The 480 instances j30 of PSPLIB, each with its shortest known makespan."""
    best = {r["instance"]: int(r["makespan"]) for r in _table("rcpsp", "j30_optimal.csv")}
    with tarfile.open(path("rcpsp", "j30.tgz")) as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is not None and member.name.endswith(".rcp"):
                name = Path(member.name).name
                yield formats.parse(name, content.read()), best[name]


# -- workflows -----------------------------------------------------------------------------------


def workflows() -> Iterator[formats.GraphRecord]:
    """Recorded workflows, by name."""
    for file in sorted(path("workflows").glob("*.json")):
        yield formats.load(file)


# -- power caps, clocks, energy per frame --------------------------------------------------------


def training(gpu: str) -> dict[tuple[str, str, int, str], dict[int, State]]:
    """Training on a ``v100`` or ``a40``: an epoch at each power cap in watts.

    By data set, network, batch size and optimiser.
    """
    found: dict[tuple[str, str, int, str], dict[int, State]] = {}
    for row in _table("zeus", f"summary_power_{gpu}.csv"):
        job = row["dataset"], row["network"], int(row["batch_size"]), row["optimizer"]
        state = State(float(row["time_per_epoch"]), float(row["average_power"]))
        found.setdefault(job, {})[int(row["power_limit"])] = state
    return found


def clocks() -> dict[str, dict[tuple[int, int], State]]:
    """24 kernels on a GTX Titan X at each pair of memory and core clock in MHz."""
    found: dict[str, dict[tuple[int, int], State]] = {}
    for row in _table("dvfs", "gtx_titan_x.csv"):
        pair = int(row["mem_mhz"]), int(row["core_mhz"])
        state = State(float(row["time_ms"]) * 1e-3, float(row["power_w"]))
        found.setdefault(row["kernel"], {})[pair] = state
    return found


def frame_energy() -> Mapping[str, dict[str, float]]:
    """36 vision kernels: joules per frame on each device of the board."""
    units = {"arm57_mj": "arm", "gpu_tx2_mj": "gpu", "fpga_zcu102_mj": "fpga"}
    return {
        row["kernel"]: {device: float(row[column]) * 1e-3 for column, device in units.items()}
        for row in _table("dvfs", "cpu_gpu_fpga_energy_per_frame_mj.csv")
    }
