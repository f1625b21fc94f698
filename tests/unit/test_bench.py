"""The form of evaluations, the patterns, and the evaluation of the overhead on a small scale."""

import argparse
import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
KEYS = {"name", "value", "unit", "target", "better", "ok", "n", "spread", "baseline"}


@pytest.fixture(scope="module")
def bench() -> Iterator[Any]:
    """The benchmarks' modules, imported from the folder they lie in."""
    sys.path.insert(0, str(ROOT))
    try:
        names = ("evaluation", "overhead", "patterns", "systems")
        yield argparse.Namespace(**{n: importlib.import_module(f"bench.{n}") for n in names})
    finally:
        sys.path.remove(str(ROOT))


# -- form ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "target", "better", "ok"),
    [
        (1.0, None, "lower", True),
        (1.0, 1.0, "lower", True),
        (1.1, 1.0, "lower", False),
        (1.0, 1.0, "higher", True),
        (0.9, 1.0, "higher", False),
        (float("nan"), 1.0, "lower", False),
        (float("nan"), 1.0, "higher", False),
    ],
)
def test_a_row_is_ok_if_it_reaches_its_target(
    bench: Any, value: float, target: float | None, better: str, ok: bool
) -> None:
    row = bench.evaluation.Row("figure", value, "s", target, better)
    assert row.ok is ok
    assert row.as_json()["ok"] is ok
    assert row.as_json().keys() == KEYS


def test_a_figure_is_the_median_with_its_spread(bench: Any) -> None:
    row = bench.evaluation.figure("figure", [3.0, 1.0, 2.0, 9.0], "s", target=2.0, baseline=4.0)
    assert (row.value, row.n, row.spread, row.baseline, row.ok) == (2.5, 4, (1.0, 9.0), 4.0, False)


def test_contenders_take_turns(bench: Any) -> None:
    calls: list[str] = []
    contenders = {name: lambda name=name: calls.append(name) for name in "abc"}
    samples = bench.evaluation.by_turns(contenders, 4)
    assert "".join(calls) == "abcbcacababc"
    assert {name: len(times) for name, times in samples.items()} == {"a": 4, "b": 4, "c": 4}
    assert all(span.wall_s >= 0 and span.cpu_s >= 0 for spans in samples.values() for span in spans)


def test_the_end_of_an_evaluation(bench: Any, tmp_path: Path, capsys: Any) -> None:
    row = bench.evaluation.Row
    good, bad = row("good", 1.0, "x", 2.0), row("bad", 3.0, "x", 2.0, n=5, spread=(2.5, 4.0))
    path = tmp_path / "new" / "figures.json"
    facts = bench.evaluation.machine("numpy")
    table = Table("a table")
    assert bench.evaluation.conclude([good], facts, table, None) == 0
    assert bench.evaluation.conclude([good, bad], facts, table, path) == 1
    assert "missed: bad is 3 x, asked is at most 2" in capsys.readouterr().out
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document.keys() == {"machine", "rows"}
    assert document["machine"]["cores"] >= 1
    assert document["machine"]["versions"].keys() == {"legato_rt", "numpy"}
    assert document["rows"] == [
        {
            "name": "good",
            "value": 1.0,
            "unit": "x",
            "target": 2.0,
            "better": "lower",
            "ok": True,
            "n": 1,
            "spread": None,
            "baseline": None,
        },
        {
            "name": "bad",
            "value": 3.0,
            "unit": "x",
            "target": 2.0,
            "better": "lower",
            "ok": False,
            "n": 5,
            "spread": [2.5, 4.0],
            "baseline": None,
        },
    ]


# -- patterns -----------------------------------------------------------------------------------


def test_patterns_of_known_shape(bench: Any) -> None:
    patterns = bench.patterns
    assert patterns.independent(3).needs == [(), (), ()]
    assert patterns.chain(3).needs == [(), (0,), (1,)]
    assert patterns.tree(7).needs == [(), (), (), (), (0, 1), (2, 3), (4, 5)]
    stencil = patterns.stencil(32).needs
    assert stencil[:16] == [()] * 16
    assert (stencil[16], stencil[20], stencil[31]) == ((0, 1), (3, 4, 5), (14, 15))
    fft = patterns.fft(80).needs
    assert [fft[16 * step + 8][0] - 16 * (step - 1) for step in range(1, 5)] == [7, 6, 4, 0]
    assert fft[16 * 1] == (0, 1)
    # potrf, two trsm; syrk, syrk, gemm; potrf, trsm; syrk; potrf.
    assert patterns.cholesky(10).needs == [
        (),
        (0,),
        (0,),
        (1,),
        (2,),
        (2, 1),
        (3,),
        (5, 6),
        (4, 7),
        (8,),
    ]


@pytest.mark.parametrize("tasks", [1, 100, 1000])
def test_patterns_are_graphs_of_about_the_size_asked_for(bench: Any, tasks: int) -> None:
    for name, make in bench.patterns.PATTERNS.items():
        pattern = make(tasks)
        assert pattern.name == name
        assert all(need < task for task, needs in enumerate(pattern.needs) for need in needs)
        assert all(len(set(needs)) == len(needs) for needs in pattern.needs)
        assert len(pattern) == tasks or 0.7 * tasks < len(pattern) <= max(tasks, 16)
        assert pattern.sinks
        needed = {need for needs in pattern.needs for need in needs}
        assert needed.isdisjoint(pattern.sinks)


def test_every_system_computes_every_pattern(bench: Any) -> None:
    for name, system in bench.systems.SYSTEMS.items():
        with system(2) as run:
            for make in bench.patterns.PATTERNS.values():
                pattern = make(60)
                right = bench.systems.plain(pattern, bench.systems.mixed).values
                assert run(pattern, bench.systems.mixed).values == right, (name, pattern.name)


def test_the_body_that_verifies_depends_on_the_order(bench: Any) -> None:
    mixed = bench.systems.mixed
    assert mixed(1, 2, 3) != mixed(1, 3, 2)
    assert mixed(1, 2) != mixed(2, 2)


# -- overhead -----------------------------------------------------------------------------------


def test_overhead_says_what_it_measured(bench: Any, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "overhead.json"
    small = ["--tasks", "50", "--repetitions", "2", "--patterns", "chain", "tree"]
    code = bench.overhead.main([*small, "--json", str(path)])
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    assert code == (0 if all(row["ok"] for row in rows) else 1)
    held = {row["name"]: row for row in rows if row["target"] is not None}
    assert held.keys() == {"chain.by_thread_pool", "tree.by_thread_pool"}
    for row in held.values():
        assert (row["target"], row["better"], row["n"]) == (2.0, "lower", 2)
        assert row["spread"][0] <= row["value"] <= row["spread"][1]
        assert row["baseline"] > 0
    assert "ThreadPoolExecutor" in capsys.readouterr().out


def test_overhead_times_nothing_that_is_wrong(bench: Any) -> None:
    def wrong(pattern: Any, body: Any) -> Any:
        outcome = bench.systems.plain(pattern, body)
        return outcome._replace(values=[*outcome.values[:-1], 0])

    with pytest.raises(SystemExit, match="other computes wrong values on the pattern independent"):
        bench.overhead.verify({"plain": bench.systems.plain, "other": wrong})
