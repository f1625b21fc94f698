"""Graph files: what is read, what comes back, and that every refusal names file and place."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import legato_rt as lrt
from legato_rt.formats import GraphRecord, TaskRecord, load, parse

STG = """\
  2
  0  0  0
  1  5  1  0
  2  7  1  0
  3  0  2  1  2
# Critical path: 7
"""

RCP = """\
4 2
3 9
0 0 0 2 2 3
5 2 0
  1 4
4 2 9 1 4
0 0 0 0
"""

WORKFLOW: dict[str, Any] = {
    "name": "two steps",
    "schemaVersion": "1.5",
    "createdAt": "2020",
    "workflow": {
        "specification": {
            "tasks": [
                {
                    "name": "sum_ID0000002",
                    "id": "b",
                    "parents": [],
                    "children": [],
                    "inputFiles": ["x"],
                    "outputFiles": [],
                },
                {"name": "split_1", "id": "a", "parents": [], "children": ["b"]},
            ],
            "files": [{"id": "x", "sizeInBytes": 1000}],
        },
        "execution": {
            "tasks": [
                {"id": "a", "runtimeInSeconds": 1.5, "command": {"program": "/bin/split"}},
                {"id": "b", "runtimeInSeconds": 2, "coreCount": 4, "command": {"program": "if x"}},
            ]
        },
    },
}


def workflow(change: str, value: Any) -> bytes:
    """The workflow with one value, by its path, replaced."""
    copy = json.loads(json.dumps(WORKFLOW))
    *path, last = change.split(".")
    inner = copy
    for key in path:
        inner = inner[int(key) if key.isdecimal() else key]
    inner[int(last) if last.isdecimal() else last] = value
    return json.dumps(copy).encode()


def test_a_standard_task_graph() -> None:
    graph = parse("dir/rand.stg", STG.encode())
    assert graph.name == "rand"
    assert [task.seconds["cpu"] for task in graph.tasks] == [0.0, 5.0, 7.0, 0.0]
    assert [task.predecessors for task in graph.tasks] == [(), (0,), (0,), (1, 2)]


def test_a_project_with_resources() -> None:
    graph = parse("x.rcp", RCP.encode())
    assert graph.capacities == (3, 9)
    assert graph.tasks[1] == TaskRecord(
        "2", "activity", (0,), seconds={"cpu": 5.0}, resources=(2, 0)
    )
    assert graph.tasks[3].predecessors == (1, 2)
    demands, capacities = graph.demands()
    assert demands.tolist() == [[0, 0], [2, 0], [2, 9], [0, 0]]
    assert capacities.tolist() == [3, 9]


def test_a_workflow() -> None:
    graph = parse("w.json", json.dumps(WORKFLOW).encode())
    assert graph.name == "two steps"
    assert graph.tasks == (
        TaskRecord("a", "split", seconds={"cpu": 1.5}),
        TaskRecord("b", "sum", (0,), (("x", 1000.0),), seconds={"cpu": 2.0}, cores=4),
    )


def test_edges_have_the_bytes_that_are_handed_over() -> None:
    graph = GraphRecord(
        (
            TaskRecord("a", "k", writes=(("x", 8.0), ("y", 16.0))),
            TaskRecord("b", "k", (0,), reads=(("x", 8.0),), writes=(("x", 8.0),)),
            TaskRecord("c", "k", (0, 1), reads=(("x", 8.0), ("y", 16.0))),
        )
    )
    dag = graph.dag()
    assert dag.before(2).tolist() == [0, 1]
    assert dag.predecessor_bytes.tolist() == [8.0, 24.0, 8.0]
    assert dag.names == ("a", "b", "c")


def test_times_by_device_before_kind() -> None:
    power = lrt.Machine.from_toml("mirage").devices[0].power
    devices = [
        lrt.Device("cpu", "cpu", ("cpu",), 1, power),
        lrt.Device("gpu:0", "cuda", ("cuda",), 1, power),
        lrt.Device("gpu:1", "cuda", ("cuda",), 1, power),
    ]
    graph = GraphRecord(
        (TaskRecord("a", "k", seconds={"cuda": 2.0, "gpu:1": 3.0}), TaskRecord("b", "k"))
    )
    inf = float("inf")
    assert graph.seconds(devices).tolist() == [[inf, 2.0, 3.0], [inf, inf, inf]]
    assert graph.seconds(devices, {"k": {"cpu": 9.0}}).tolist()[1] == [9.0, inf, inf]


names = st.text(max_size=8)
amounts = st.floats(0, 1e12)
data = st.lists(st.tuples(names, amounts), max_size=3).map(tuple)


@st.composite
def records(draw: st.DrawFn) -> GraphRecord:
    """A random recorded graph."""
    capacities = draw(st.lists(st.integers(0, 5), max_size=3))
    tasks = []
    for index in range(draw(st.integers(0, 6))):
        before = draw(st.sets(st.integers(0, index - 1))) if index else set()
        tasks.append(
            TaskRecord(
                draw(names),
                draw(names),
                tuple(sorted(before)),
                draw(data),
                draw(data),
                draw(st.dictionaries(names, amounts, max_size=3)),
                draw(st.integers(1, 64)),
                tuple(draw(st.integers(0, limit)) for limit in capacities),
                draw(st.none() | amounts),
                draw(st.integers(-9, 9)),
            )
        )
    return GraphRecord(tuple(tasks), draw(names), tuple(capacities))


@given(graph=records())
def test_what_is_saved_is_loaded(graph: GraphRecord, tmp_path_factory: Any) -> None:
    path = tmp_path_factory.mktemp("graphs") / "graph.json"
    graph.save(path)
    assert load(path) == graph
    assert GraphRecord.load(path) == graph
    assert [file.name for file in path.parent.iterdir()] == ["graph.json"]


def test_saving_where_there_is_no_folder_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        GraphRecord(()).save(tmp_path / "none" / "graph.json")


RECORDED = '{"format": "legato_rt.graph", "version": 1, "tasks": [\n%s]}'


@pytest.mark.parametrize(
    ("name", "content", "place", "problem"),
    [
        ("a.txt", "", "", "is none of .json, .stg and .rcp"),
        ("a.stg", "", "line 1", "ends where the number of tasks should be"),
        ("a.stg", "1\n0 0", "line 2", "ends where the number of its predecessors should be"),
        ("a.stg", "0\n0 0 0\n2 0 0", "line 3", "task 1 should follow, not 2"),
        ("a.stg", "0\n0 x 0", "line 2", "its time should be a whole number, not 'x'"),
        ("a.stg", "0\n0 0 1 1\n1 0 1 0", "", "the graph has a cycle: 0 -> 1 -> 0"),
        ("a.stg", "0\n0 0 0\n1 0 1 9", "line 3", "a predecessor should be from 0 to 1, not 9"),
        ("a.stg", STG + "5", "line 7", "nothing should follow, but '5' does"),
        ("a.rcp", "1 1\n3\n5 4 0", "line 3", "a demand should be from 0 to 3, not 4"),
        ("a.rcp", "1 1\n3\n-5 1 0", "line 3", "a duration should be from 0"),
        ("a.rcp", "99999999 1", "line 1", "the number of activities should be from 1 to 1000000"),
        ("a.json", '{"a": 1,\n"b": ]}', "line 2", "JSON is malformed"),
        ("a.json", RECORDED % '{"name": "a"}', "tasks[0]", "missing required field `kind`"),
        (
            "a.json",
            RECORDED % '{"name": "a", "kind": "k", "seconds": {"cpu": -1}}',
            "tasks[0].seconds[...]",
            "Expected `float` >= 0",
        ),
        (
            "a.json",
            RECORDED % '{"name": "a", "kind": "k", "predecessors": [0]}',
            "tasks[0].predecessors",
            "a cannot wait for task 0",
        ),
        (
            "a.json",
            RECORDED % '{"name": "a", "kind": "k", "resources": [1]}',
            "tasks[0].resources",
            "a has 1 demands of 0 resources",
        ),
        (
            "a.json",
            RECORDED % '{"name": "a", "kind": "k", "colour": 1}',
            "tasks[0]",
            "unknown field `colour`",
        ),
        (
            "a.json",
            '{"format": "legato_rt.graph", "version": 2, "tasks": []}',
            "version",
            "is 2; 1 is known",
        ),
    ],
)
def test_what_is_wrong_is_named(name: str, content: str, place: str, problem: str) -> None:
    with pytest.raises(lrt.FormatError) as caught:
        parse(name, content.encode())
    assert caught.value.file == name
    assert caught.value.place == place
    assert problem in caught.value.problem
    assert str(caught.value).startswith(f"{name}: ")


@pytest.mark.parametrize(
    ("change", "value", "place", "problem"),
    [
        ("schemaVersion", "1.4", "schemaVersion", "is '1.4'; '1.5' is known"),
        ("workflow.specification.tasks.0.id", "a", "workflow.specification.tasks[1].id", "'a' is"),
        (
            "workflow.specification.tasks.0.parents",
            ["c"],
            "workflow.specification.tasks[0].parents",
            "there is no task 'c'",
        ),
        (
            "workflow.specification.tasks.0.inputFiles",
            ["y"],
            "workflow.specification.tasks[0].inputFiles",
            "there is no file 'y'",
        ),
        ("workflow.execution.tasks.0.id", "z", "workflow.execution.tasks", "'a' is not among"),
        (
            "workflow.execution.tasks.0.runtimeInSeconds",
            "1",
            "workflow.execution.tasks[0].runtimeInSeconds",
            "Expected `float`, got `str`",
        ),
        ("workflow.specification.tasks.0.children", ["a"], "", "the graph has a cycle"),
    ],
)
def test_what_is_wrong_with_a_workflow_is_named(
    change: str, value: Any, place: str, problem: str
) -> None:
    with pytest.raises(lrt.FormatError) as caught:
        parse("w.json", workflow(change, value))
    assert caught.value.place == place
    assert problem in caught.value.problem


def test_files_that_are_not_read(tmp_path: Path) -> None:
    large = tmp_path / "large.stg"
    large.write_text(STG, encoding="utf-8")
    with pytest.raises(lrt.FormatError, match=r"large.stg: is larger than 10 bytes"):
        load(large, max_bytes=10)
    assert len(load(large).tasks) == 4
    with pytest.raises(lrt.FormatError, match=r"none.rcp: cannot be read: No such file"):
        load(tmp_path / "none.rcp")
    binary = tmp_path / "binary.stg"
    binary.write_bytes(b"2\n\xff")
    with pytest.raises(lrt.FormatError, match=r"binary.stg: line 2: is not text in UTF-8"):
        load(binary)


def read_or_refused(name: str, content: bytes) -> GraphRecord | lrt.FormatError:
    try:
        return parse(name, content)
    except lrt.FormatError as error:
        return error


@given(st.binary(max_size=60), st.sampled_from(["x.stg", "x.rcp", "x.json"]))
def test_any_content_is_read_or_refused(content: bytes, name: str) -> None:
    found = read_or_refused(name, content)
    assert isinstance(found, GraphRecord) or found.file == name


@given(st.lists(st.integers(-1, 5), max_size=30), st.sampled_from(["x.stg", "x.rcp"]))
def test_any_numbers_are_read_or_refused(numbers: list[int], name: str) -> None:
    found = read_or_refused(name, " ".join(map(str, numbers)).encode())
    if isinstance(found, GraphRecord):
        assert len(found.dag()) == len(found.tasks)
    else:
        assert found.place or "cycle" in found.problem


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ((TaskRecord("a", "k", (0,)),), "cannot wait for task 0"),
        ((TaskRecord("a", "k", seconds={"cpu": float("nan")}),), "has nan there"),
        ((TaskRecord("a", "k", reads=(("x", -1.0),)),), "has -1.0 there"),
        ((TaskRecord("a", "k", flops=float("inf")),), "has inf there"),
        ((TaskRecord("a", "k", cores=0),), "takes 0 workers"),
        ((TaskRecord("a", "k", resources=(3,)),), "demands 3 of 2"),
    ],
)
def test_a_record_that_cannot_be_is_refused(tasks: tuple[TaskRecord, ...], message: str) -> None:
    with pytest.raises(lrt.UsageError, match=message):
        GraphRecord(tasks, capacities=(2,))
    with pytest.raises(lrt.UsageError, match="less than nothing"):
        GraphRecord((), capacities=(-1,))
