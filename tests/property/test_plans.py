"""Plans of random graphs against plain Python, networkx, SciPy, and what a schedule must hold."""

import itertools
import math
import random

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from legato_rt import order
from legato_rt.order import gaps
from legato_rt.order.arrays import Floats
from legato_rt.order.ranks import Rule
from tests.helpers.heft import plain_heft, random_dag, random_links, random_seconds

RULES: tuple[Rule, ...] = ("mean", "fastest", "slowest", "median")
draws = st.integers(0, 2**32).map(random.Random)
sizes = st.integers(0, 40)


@given(draws, sizes, st.integers(1, 5), st.sampled_from([0.05, 0.2, 0.6]))
def test_heft_is_that_of_plain_python(
    draw: random.Random, tasks: int, workers: int, density: float
) -> None:
    dag = random_dag(draw, tasks, density)
    seconds, links = random_seconds(draw, tasks, workers), random_links(draw, workers)
    rule = draw.choice(RULES)
    plan = order.heft(dag, seconds, rank=rule, links=links)
    rank = order.upward_rank(dag, order.weights(seconds, rule), *links.mean)
    where, start, finish = plain_heft(dag, seconds, links, order.sequence(dag, rank).tolist())
    assert plan.worker.tolist() == where
    assert plan.start_s.tolist() == start
    assert plan.finish_s.tolist() == finish
    assert list(order.violations(dag, seconds, plan, links)) == []


@settings(max_examples=20)
@given(draws, st.sampled_from([3 * gaps.WIDTH, 8 * gaps.WIDTH]), st.integers(1, 3))
def test_heft_with_many_gaps_is_that_of_plain_python(
    draw: random.Random, tasks: int, workers: int
) -> None:
    """So many that blocks of gaps are split, and that later short tasks fill them."""
    long = tasks // 2
    chain = range(long - 1)
    dag = order.Dag.from_edges(
        tasks, list(chain), [i + 1 for i in chain], [draw.uniform(0, 9) for _ in chain]
    )
    took = [draw.uniform(1, 2) for _ in range(long)]
    took += [draw.choice([0.01, 0.5, 3.0, 8.0]) for _ in range(tasks - long)]
    speeds = np.array([draw.uniform(0.5, 2) for _ in range(workers)])
    seconds = np.array(took)[:, None] / speeds
    links = random_links(draw, workers)
    plan = order.heft(dag, seconds, links=links)
    rank = order.upward_rank(dag, order.weights(seconds), *links.mean)
    where, start, _ = plain_heft(dag, seconds, links, order.sequence(dag, rank).tolist())
    assert plan.worker.tolist() == where
    assert plan.start_s.tolist() == start


@given(draws, st.integers(1, 30), st.integers(1, 4), st.booleans())
def test_heft_keeps_releases_and_busy_workers(
    draw: random.Random, tasks: int, workers: int, insertion: bool
) -> None:
    dag = random_dag(draw, tasks, 0.2)
    seconds = random_seconds(draw, tasks, workers)
    release = np.array([draw.uniform(0, 30) for _ in range(tasks)])
    available = np.array([draw.uniform(0, 30) for _ in range(workers)])
    penalty = np.array([[draw.uniform(0, 9) for _ in range(workers)] for _ in range(tasks)])
    plan = order.heft(
        dag,
        seconds,
        release_s=release,
        available_s=available,
        penalty_s=penalty,
        insertion=insertion,
    )
    took = plan.finish_s > plan.start_s
    assert np.all(plan.start_s >= release)
    assert np.all(plan.start_s[took] >= available[plan.worker[took]])
    assert list(order.violations(dag, seconds, plan)) == []


@given(draws, st.integers(1, 30))
def test_ranks_and_paths_are_those_of_networkx(draw: random.Random, tasks: int) -> None:
    dag = random_dag(draw, tasks, 0.2)
    times = np.array([draw.uniform(0, 10) for _ in range(tasks)])
    per_byte, latency = draw.uniform(0, 1), draw.uniform(0, 1)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(tasks))
    for before, after, size in dag.to_networkx().edges(data="bytes"):
        cost = latency + size * per_byte if size else 0.0
        graph.add_edge(before, after, weight=float(times[before]) + cost)
    length, path = order.critical_path(dag, times, per_byte, latency)
    graph.add_node("end")
    for task in range(tasks):
        graph.add_edge(task, "end", weight=float(times[task]))
    assert length == pytest.approx(nx.dag_longest_path_length(graph))
    along = sum(graph.edges[a, b]["weight"] for a, b in zip(path, [*path[1:], "end"], strict=True))
    assert along == pytest.approx(length)
    assert order.levels(dag).tolist() == levels_by_generation(dag)
    before = order.downward_rank(dag, times, per_byte, latency)
    rank = order.upward_rank(dag, times, per_byte, latency)
    assert np.all(before + rank <= length * (1 + 1e-12))
    assert (before + rank)[path] == pytest.approx(length)


def levels_by_generation(dag: order.Dag) -> list[int]:
    generations = enumerate(nx.topological_generations(dag.to_networkx()))
    depth = {task: level for level, tasks in generations for task in tasks}
    return [depth[task] for task in range(len(dag))]


@given(draws, st.integers(0, 40))
def test_networkx_and_back(draw: random.Random, tasks: int) -> None:
    dag = random_dag(draw, tasks, 0.2)
    graph = dag.to_networkx(weight=list(range(tasks)))
    assert [graph.nodes[task]["weight"] for task in graph] == list(range(tasks))
    back = order.Dag.from_networkx(graph)
    assert sorted(back.to_networkx().edges(data="bytes")) == sorted(graph.edges(data="bytes"))
    assert back.names == tuple(str(task) for task in range(tasks))
    turned = back.reversed().to_networkx()
    assert nx.utils.graphs_equal(turned.reverse(), back.to_networkx())


def linear_programme(seconds: Floats, workers: Floats, counts: Floats) -> float:
    kinds, classes = seconds.shape
    gain = np.zeros(kinds * classes + 1)
    gain[-1] = 1.0
    runs = np.isfinite(seconds)
    area = np.zeros((classes, len(gain)))
    share = np.zeros((kinds, len(gain)))
    for kind in range(kinds):
        for c in range(classes):
            area[c, kind * classes + c] = seconds[kind, c] if runs[kind, c] else 0.0
            share[kind, kind * classes + c] = 1.0
    area[:, -1] = -workers
    limits = [(0, None if run else 0) for run in runs.ravel()]
    found = linprog(gain, area, np.zeros(classes), share, counts, [*limits, (0, None)])
    return float(found.fun)


@given(draws, st.integers(1, 8), st.integers(1, 5))
def test_the_area_bound_is_the_linear_programme(
    draw: random.Random, kinds: int, classes: int
) -> None:
    seconds = random_seconds(draw, kinds, classes) + 1.0
    workers = np.array([float(draw.randint(1, 20)) for _ in range(classes)])
    counts = np.array([float(draw.randint(0, 9)) for _ in range(kinds)])
    bound = order.area_bound(seconds, workers, counts)
    assert bound == pytest.approx(linear_programme(seconds, workers, counts), rel=1e-6)


@given(draws, st.integers(0, 30), st.integers(1, 5))
def test_no_schedule_is_below_a_bound(draw: random.Random, tasks: int, workers: int) -> None:
    dag = random_dag(draw, tasks, draw.choice([0.05, 0.3]))
    seconds = random_seconds(draw, tasks, workers)
    seconds[:, -1] = seconds[:, 0]  # two equal workers are one class
    seconds[~np.isfinite(seconds).any(axis=1)] = 1.0
    bounds = order.lower_bounds(dag, seconds, rounds=200)
    assert bounds.combined_s >= bounds.simple_s
    for rule in ("mean", "fastest", "slowest"):
        makespan_s = order.heft(dag, seconds, rank=rule).makespan_s
        assert makespan_s >= bounds.combined_s * (1 - 1e-9)


@given(draws, st.integers(0, 25), st.integers(0, 3), st.integers(1, 20))
def test_no_timetable_breaks_a_limit(
    draw: random.Random, tasks: int, resources: int, passes: int
) -> None:
    dag = random_dag(draw, tasks, draw.choice([0.05, 0.3]))
    seconds = [draw.choice([0.0, 1.0, 2.0, draw.uniform(0, 9)]) for _ in range(tasks)]
    limits = np.array([draw.randint(0, 6) for _ in range(resources)], dtype=int)
    needs = np.array([[draw.randint(0, int(limit)) for limit in limits] for _ in range(tasks)])
    needs = needs.reshape(tasks, resources).astype(int)
    table = order.timetable(dag, seconds, needs, limits, passes=passes, seed=draw.randint(0, 9))
    assert list(order.broken_limits(dag, table, needs, limits)) == []
    assert 1 <= table.passes <= passes
    assert table.makespan_s >= order.critical_path(dag, seconds)[0] * (1 - 1e-12)
    once = order.timetable(dag, seconds, needs, limits)
    assert table.makespan_s <= once.makespan_s


@given(draws, st.integers(1, 6), st.integers(1, 3), st.booleans())
def test_a_pipeline_is_mapped_well(
    draw: random.Random, stages: int, devices: int, idles: bool
) -> None:
    """Best where idling costs nothing; never worse than one device alone, nor below the best."""
    seconds = random_seconds(draw, stages, devices) + 1.0
    joules = np.array([[draw.uniform(0, 9) for _ in range(devices)] for _ in range(stages)])
    idle_w = np.array([draw.uniform(0, 2) * idles for _ in range(devices)])
    steady = order.steady_state(seconds, joules, idle_w)
    every = itertools.product(range(devices), repeat=stages)
    mapped = [pipeline_energy(seconds, joules, idle_w, list(mapping)) for mapping in every]
    assert steady.total_j == pytest.approx(
        pipeline_energy(seconds, joules, idle_w, steady.device.tolist())
    )
    assert steady.total_j >= min(mapped) * (1 - 1e-12)
    alone = (pipeline_energy(seconds, joules, idle_w, [d] * stages) for d in range(devices))
    assert steady.total_j <= min(alone) * (1 + 1e-12)
    if not idles:
        assert steady.total_j == pytest.approx(min(mapped))


def pipeline_energy(seconds: Floats, joules: Floats, idle_w: Floats, mapping: list[int]) -> float:
    load = [0.0] * len(idle_w)
    total = 0.0
    for stage, device in enumerate(mapping):
        if not np.isfinite(seconds[stage, device]):
            return math.inf
        load[device] += seconds[stage, device]
        total += float(joules[stage, device])
    used = set(mapping)
    return total + sum((max(load) - load[d]) * float(idle_w[d]) for d in used)
