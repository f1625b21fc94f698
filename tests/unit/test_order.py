"""Graphs on arrays: what they refuse, and small cases known by hand."""

import subprocess
import sys

import numpy as np
import pytest

import legato_rt as lrt
from bench.layered import layered, plain_heft, plan
from legato_rt import order


def diamond(names: tuple[str, ...] = ()) -> order.Dag:
    return order.Dag.from_edges(4, [0, 0, 1, 2], [1, 2, 3, 3], [8.0, 0.0, 8.0, 8.0], names)


def test_a_graph_is_kept_by_successors_and_by_predecessors() -> None:
    dag = diamond()
    assert (len(dag), dag.edges) == (4, 4)
    assert dag.after(0).tolist() == [1, 2]
    assert dag.before(3).tolist() == [1, 2]
    assert dag.order.tolist() == [0, 1, 2, 3]
    assert dag.successor_bytes.tolist() == [8.0, 0.0, 8.0, 8.0]


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (([0], [4]), "an edge names task 4; there are 4, numbered from 0"),
        (([-1], [0]), "an edge names task -1"),
        (([0], [1, 2]), "not of one length"),
        (([0], [1], [-1.0]), "a number of bytes from zero up"),
        (([0], [1], [np.inf]), "a number of bytes from zero up"),
        (([0.5], [1]), "whole numbers"),
        (([0], [1], None, ["a"]), "4 tasks have 1 names"),
    ],
)
def test_what_is_no_graph_is_refused(edges: tuple[list[int], ...], message: str) -> None:
    with pytest.raises(lrt.UsageError, match=message):
        order.Dag.from_edges(4, *edges)  # type: ignore[arg-type]


def test_a_cycle_is_named_in_the_direction_of_its_edges() -> None:
    with pytest.raises(
        lrt.UsageError, match=r"cycle: (b -> c -> d -> b|c -> d -> b -> c|d -> b -> c -> d)$"
    ):
        order.Dag.from_edges(4, [0, 1, 2, 3], [1, 2, 3, 1], names=list("abcd"))
    with pytest.raises(lrt.UsageError, match=r"cycle: 0 -> 0$"):
        order.Dag.from_edges(1, [0], [0])


def test_ranks_of_a_diamond() -> None:
    dag = diamond()
    times = [1.0, 2.0, 3.0, 4.0]
    assert order.upward_rank(dag, times).tolist() == [8.0, 6.0, 7.0, 4.0]
    assert order.upward_rank(dag, times, 0.5, 1.0).tolist() == [17.0, 11.0, 12.0, 4.0]
    assert order.downward_rank(dag, times).tolist() == [0.0, 1.0, 1.0, 4.0]
    assert order.critical_path(dag, times) == (8.0, [0, 2, 3])
    assert order.levels(dag).tolist() == [0, 1, 1, 2]


def test_weights_of_different_times() -> None:
    seconds = [[1.0, 3.0, np.inf], [2.0, 2.0, 8.0]]
    assert order.weights(seconds).tolist() == [2.0, 4.0]
    assert order.weights(seconds, "fastest").tolist() == [1.0, 2.0]
    assert order.weights(seconds, "slowest").tolist() == [3.0, 8.0]
    assert order.weights(seconds, "median").tolist() == [2.0, 2.0]
    assert order.weights(seconds, [3.0, 1.0, 0.0]).tolist() == [1.5, 2.0]


@pytest.mark.parametrize(
    ("seconds", "rule", "message"),
    [
        ([[np.inf, np.inf]], "mean", "task 0 can run on no worker"),
        ([[1.0, -1.0]], "mean", "task 0 has a negative or unknown time"),
        ([[1.0, np.nan]], "mean", "task 0 has a negative or unknown time"),
        ([[1.0, 1.0]], "best", "unknown rule 'best'"),
        ([[1.0, 1.0]], [1.0], "a weight from zero up is needed for each worker"),
        ([[1.0, np.inf]], [0.0, 1.0], "and some for each task"),
    ],
)
def test_times_that_cannot_be_are_refused(
    seconds: list[list[float]], rule: str, message: str
) -> None:
    with pytest.raises(lrt.UsageError, match=message):
        order.weights(seconds, rule)  # type: ignore[arg-type]


def test_heft_fills_a_gap() -> None:
    """Task 2 waits for data from the other worker; task 3 fits before it."""
    dag = order.Dag.from_edges(4, [0, 1, 1], [2, 2, 3], [5.0, 5.0, 0.0])
    seconds = [[3.0, np.inf], [np.inf, 3.0], [4.0, np.inf], [2.0, np.inf]]
    links = order.Links.uniform(2, 1.0)
    made = order.heft(dag, seconds, links=links)
    assert made.start_s.tolist() == [0.0, 0.0, 8.0, 3.0]
    assert made.makespan_s == 12.0
    plain = order.heft(dag, seconds, links=links, insertion=False)
    assert plain.start_s.tolist() == [0.0, 0.0, 8.0, 12.0]


def test_heft_refuses_an_order_against_the_edges() -> None:
    with pytest.raises(lrt.UsageError, match="task 1 ranks above its predecessor 0"):
        order.heft(diamond(), np.ones((4, 2)), order_by=[0.0, 1.0, 0.0, 0.0])
    with pytest.raises(lrt.UsageError, match="links of 3 workers for 2"):
        order.heft(diamond(), np.ones((4, 2)), links=order.Links.none(3))
    with pytest.raises(lrt.UsageError, match="finite numbers of shape"):
        order.heft(diamond(), np.ones((4, 2)), release_s=[0.0, 0.0, np.inf, 0.0])


def test_a_broken_schedule_is_told_in_words() -> None:
    seconds = np.ones((4, 2))
    wrong = order.Schedule(
        np.array([0, 0, 0, 1]), np.array([0.0, 0.5, 1.0, 1.0]), np.array([1.0, 1.5, 3.0, 2.0])
    )
    told = list(order.violations(diamond(), seconds, wrong, order.Links.uniform(2, 1.0)))
    assert told == [
        "task 2 runs from 1 to 3 s, not 1 s",
        "task 1 starts before the data of task 0 are there",
        "task 3 starts before the data of task 1 are there",
        "task 3 starts before the data of task 2 are there",
        "tasks 0 and 1 overlap on worker 0",
        "tasks 1 and 2 overlap on worker 0",
    ]


@pytest.mark.parametrize("published", [(100, 82.43), (1_000, 724.74), (10_000, 7304.25)])
def test_makespans_of_other_planners(published: tuple[int, float]) -> None:
    instance = layered(published[0])
    assert plan(instance.dag(), instance.seconds()).makespan_s == pytest.approx(
        published[1], abs=0.005
    )


def test_the_plain_planner_of_the_evaluation_agrees() -> None:
    instance = layered(120, seed=3)
    assert plan(instance.dag(), instance.seconds()).makespan_s == plain_heft(instance)


def test_bounds_of_small_graphs() -> None:
    chain = order.Dag.from_edges(3, [0, 1], [1, 2])
    bounds = order.lower_bounds(chain, np.full((3, 2), 2.0))
    assert (bounds.area_s, bounds.path_s, bounds.simple_s) == (3.0, 6.0, 6.0)
    assert bounds.combined_s == 6.0
    # One task, four others on two workers, one task: neither area (3) nor path (3) sees 4.
    spindle = order.Dag.from_edges(6, [0, 0, 0, 0, 1, 2, 3, 4], [1, 2, 3, 4, 5, 5, 5, 5])
    bounds = order.lower_bounds(spindle, np.ones((6, 2)))
    assert (bounds.area_s, bounds.path_s) == (3.0, 3.0)
    assert bounds.combined_s == pytest.approx(4.0, rel=1e-3)
    assert order.lower_bounds(spindle, np.ones((6, 2)), rounds=0).combined_s == 3.0
    assert order.lower_bounds(order.Dag.from_edges(0, [], []), []).combined_s == 0.0


def test_the_area_bound_on_two_kinds_of_workers() -> None:
    # Half of the tasks would take a worker of the second class one second each, ten on the first.
    assert order.area_bound([[10.0, 1.0]], [10.0, 1.0], [20.0]) == pytest.approx(10.0)
    assert order.area_bound([[2.0, np.inf], [np.inf, 3.0]], [1.0, 1.0], [4.0, 1.0]) == 8.0
    assert order.area_bound([], None, []) == 0.0
    with pytest.raises(lrt.UsageError, match="above zero is needed for each class"):
        order.area_bound([[1.0]], [0.0])
    with pytest.raises(lrt.UsageError, match="from zero up is needed for each kind"):
        order.area_bound([[1.0]], [1.0], [-1.0])


def test_a_timetable_starts_the_urgent_task_first() -> None:
    """Both 0 and 1 could start, not together; a long path follows 1."""
    dag = order.Dag.from_edges(3, [1], [2])
    table = order.timetable(dag, [2.0, 1.0, 5.0], [[1], [1], [0]], [1])
    assert table.start_s.tolist() == [1.0, 0.0, 1.0]
    assert (table.makespan_s, table.passes) == (6.0, 1)


@pytest.mark.parametrize(
    ("seconds", "demands", "capacities", "message"),
    [
        ([1.0], [[1], [1]], [1], "demands of 1 tasks on 1 resources"),
        ([-1.0], [[1]], [1], "1 times from zero up"),
        ([1.0], [[2]], [1], "task 0 needs more of a resource than there is"),
        ([1.0], [[0.5]], [1], "whole numbers from zero up"),
        ([1.0], [[-1]], [1], "whole numbers from zero up"),
    ],
)
def test_what_cannot_be_scheduled_is_refused(
    seconds: list[float], demands: list[list[int]], capacities: list[int], message: str
) -> None:
    with pytest.raises(lrt.UsageError, match=message):
        order.timetable(order.Dag.from_edges(1, [], []), seconds, demands, capacities)
    with pytest.raises(lrt.UsageError, match="at least one pass"):
        order.timetable(order.Dag.from_edges(0, [], []), [], np.zeros((0, 0)), [], passes=0)


def test_a_broken_timetable_is_told_in_words() -> None:
    dag = order.Dag.from_edges(2, [0], [1])
    wrong = order.Timetable(np.array([0.0, 0.5]), np.array([1.0, 1.5]), 1)
    assert list(order.broken_limits(dag, wrong, [[1], [1]], [1])) == [
        "task 1 starts before task 0 has finished",
        "resource 0 is used by 2 of 1 at 0.5 s",
    ]


def test_a_seed_gives_the_same_timetable() -> None:
    dag = order.Dag.from_edges(30, [], [])
    seconds, needs = np.arange(1.0, 31.0), np.arange(30)[:, None] % 7
    tables = [order.timetable(dag, seconds, needs, [7], passes=9, seed=4) for _ in range(2)]
    assert tables[0].start_s.tolist() == tables[1].start_s.tolist()


def test_numba_is_loaded_by_the_first_plan_only() -> None:
    probe = (
        "import sys\n"
        "from legato_rt import order\n"
        "dag = order.Dag.from_edges(2, [0], [1])\n"
        "assert 'numba' not in sys.modules\n"
        "assert order.heft(dag, [[1.0], [2.0]]).makespan_s == 3.0\n"
        "assert 'numba' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", probe], check=True)
