"""The portfolio of schedules, and the compiled schedulers it is made of."""

import heapq

import numpy as np
import pytest

from legato_rt.order import Dag, Links, heft, portfolio, violations
from legato_rt.order.annealing import anneal
from legato_rt.order.dispatch import Rule, dispatch
from legato_rt.order.goal import Goal
from legato_rt.order.goal_kernel import cost, longest
from legato_rt.order.heaps import pop, push
from legato_rt.order.listing import listed, sent, shared
from legato_rt.order.portfolio import Trials, kind_of
from legato_rt.order.shop import by_speed, make_shop

SMALL = 200_000


def random_case(seed: int, tasks: int = 40, bytes_up_to: float = 0.0) -> tuple[Dag, np.ndarray]:
    """A random graph, and times on two slow workers and one fast one."""
    rng = np.random.default_rng(seed)
    edges = [(a, b) for b in range(tasks) for a in range(b) if rng.random() < 2 / (b + 1)]
    written = rng.uniform(0, bytes_up_to, tasks)
    sizes = [written[a] for a, _ in edges]
    dag = Dag.from_edges(tasks, [a for a, _ in edges], [b for _, b in edges], sizes)
    slow = rng.uniform(1, 10, tasks)
    return dag, np.stack([slow, slow, slow / rng.uniform(0.5, 8, tasks)], axis=1)


def by_hand(dag: Dag, seconds: np.ndarray, priority: np.ndarray, group: np.ndarray) -> float:
    """What `shared` does, written plainly; workers 0 and 1 are group 0, worker 2 is group 1."""
    waits = np.diff(dag.predecessor_start)
    ready = [i for i in range(len(dag)) if not waits[i]]
    idle, running, now = [2, 1], [], 0.0
    while True:
        for g in (0, 1):
            while idle[g] and any(group[i] == g for i in ready):
                task = max((i for i in ready if group[i] == g), key=lambda i: priority[i])
                ready.remove(task)
                idle[g] -= 1
                heapq.heappush(running, (now + seconds[task, 2 * g], task))
        if not running:
            return now
        now = running[0][0]
        while running and running[0][0] <= now:
            task = heapq.heappop(running)[1]
            idle[group[task]] += 1
            first, last = dag.successor_start[task], dag.successor_start[task + 1]
            for after in dag.successors[first:last]:
                waits[after] -= 1
                if not waits[after]:
                    ready.append(int(after))


def test_heaps_sort() -> None:
    keys = np.random.default_rng(0).permutation(50).astype(float)
    entries, ordered = np.empty(50, np.int32), np.empty(50)
    count = 0
    for entry, key in enumerate(keys):
        count = push(entries, ordered, count, entry, key)
    out = []
    while count:
        out.append(keys[pop(entries, ordered, count)])
        count -= 1
    assert out == sorted(keys)


@pytest.mark.parametrize("seed", range(5))
def test_listing_does_what_it_says(seed: int) -> None:
    dag, seconds = random_case(seed)
    shop = make_shop(dag, seconds)[0]
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, len(dag)).astype(np.int32)
    priority = rng.random(len(dag))
    start_s, worker = np.empty(len(dag)), np.empty(len(dag), np.int32)
    found = shared(shop, priority, group, start_s, worker, np.inf)
    assert found == pytest.approx(by_hand(dag, seconds, priority, group))
    assert (shop.pool_of[worker] == group).all()
    assert shared(shop, priority, group, start_s, worker, found / 2) == np.inf


def test_transfers_go_through_the_memories() -> None:
    dag = Dag.from_edges(3, [0, 0], [1, 2], [10.0, 10.0])
    seconds = [[1.0, np.inf], [np.inf, 1.0], [np.inf, 1.0]]
    shop = make_shop(dag, seconds, links=Links.uniform(2, bytes_per_s=5.0, latency_s=0.5))[0]
    start_s, worker = np.empty(3), np.empty(3, np.int32)
    priority, group = np.array([3.0, 2.0, 1.0]), by_speed(shop)
    # Sent when the first task is over; both wait for the same copy.
    assert listed(shop, priority, group, start_s, worker, np.inf) == 5.5
    assert start_s.tolist() == [0.0, 3.5, 4.5]


def test_first_come_takes_the_earliest_finish_anywhere() -> None:
    shop = make_shop(Dag.from_edges(3, [], []), [[4.0, 1.0]] * 3)[0]
    start_s, worker = np.empty(3), np.empty(3, np.int32)
    anywhere = np.full(3, -1, np.int32)
    assert sent(shop, np.zeros(3), anywhere, start_s, worker, np.inf) == 3.0
    assert worker.tolist() == [1, 1, 1]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("hold", [np.inf, 0.5, 0.0])
def test_dispatch_builds_valid_schedules(seed: int, hold: float) -> None:
    dag, seconds = random_case(seed)
    shop = make_shop(dag, seconds)[0]
    best = by_speed(shop)
    rank = np.arange(len(dag), 0.0, -1.0)
    rule = Rule(rank, rank, 50.0, 1.0, 0.1, hold)
    group, start_s = np.empty(len(dag), np.int32), np.empty(len(dag))
    spent = np.zeros(1, np.int64)
    found = dispatch(shop, rule, best, group, start_s, np.inf, spent)
    again, worker = np.empty(len(dag)), np.empty(len(dag), np.int32)
    assert listed(shop, -start_s, group, again, worker, np.inf) == pytest.approx(found)
    assert spent[0] > 0


def test_annealing_never_makes_it_longer() -> None:
    dag, seconds = random_case(1)
    shop = make_shop(dag, seconds)[0]
    group, priority = by_speed(shop), np.arange(len(dag), 0.0, -1.0)
    start_s, worker = np.empty(len(dag)), np.empty(len(dag), np.int32)
    before = listed(shop, priority, group, start_s, worker, np.inf)
    kind = np.zeros(len(dag), np.int32)
    after = anneal(shop, Goal(), kind, priority, group, 2000, 1e-3, 0)
    assert after < before
    assert listed(shop, priority, group, start_s, worker, np.inf) == after


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("linked", [False, True])
def test_the_portfolio_is_valid_and_no_worse_than_heft(seed: int, linked: bool) -> None:
    dag, seconds = random_case(seed, bytes_up_to=4.0 if linked else 0.0)
    links = Links.uniform(3, bytes_per_s=2.0) if linked else None
    plan = portfolio(dag, seconds, links=links, effort=SMALL)
    assert list(violations(dag, seconds, plan, links)) == []
    if not linked:
        for rank in ("mean", "fastest"):
            assert plan.makespan_s <= heft(dag, seconds, rank=rank).makespan_s


def test_the_same_call_gives_the_same_schedule() -> None:
    dag, seconds = random_case(3)
    one, other = (portfolio(dag, seconds, effort=SMALL, seed=5) for _ in range(2))
    assert np.array_equal(one.start_s, other.start_s)
    assert np.array_equal(one.worker, other.worker)


def test_workers_that_differ_little_are_planned_together_and_timed_apart() -> None:
    dag, seconds = random_case(2)
    seconds = np.concatenate([seconds, seconds[:, 2:] * 1.05], axis=1)
    assert make_shop(dag, seconds)[0].pool_of.tolist() == [0, 0, 1, 1]
    plan = portfolio(dag, seconds, effort=SMALL)
    assert list(violations(dag, seconds, plan)) == []


def test_corner_cases() -> None:
    assert portfolio(Dag.from_edges(0, [], []), np.zeros((0, 1))).makespan_s == 0.0
    one = portfolio(Dag.from_edges(1, [], []), [[2.0, np.inf]], effort=SMALL)
    assert (one.makespan_s, one.worker.tolist()) == (2.0, [0])
    alike = portfolio(Dag.from_edges(3, [], []), [[2.0, 2.0]] * 3, effort=SMALL)
    assert alike.makespan_s == 4.0


def test_kinds_are_given_or_made_by_acceleration() -> None:
    dag, seconds = random_case(4)
    shop = make_shop(dag, seconds)[0]
    assert kind_of(shop, ["a", "b"] * 20).tolist() == [0, 1] * 20
    made = kind_of(shop, [f"t{i}" for i in range(40)])
    assert set(made.tolist()) == set(range(6))


def test_goals_count_energy_time_and_both() -> None:
    assert cost(Goal(), 3.0, 99.0) == 3.0
    assert cost(Goal(per_joule=1.0, per_second=0.0, idle_w=2.0), 3.0, 4.0) == 10.0
    assert cost(Goal(power=2, idle_w=2.0), 3.0, 4.0) == 90.0
    assert cost(Goal(bound_s=2.0), 3.0, 0.0) == np.inf
    both = Goal(per_joule=1.0, per_second=0.5, idle_w=2.0, bound_s=9.0)
    assert cost(both, longest(both, 4.0, 11.0), 4.0) == pytest.approx(11.0)
    assert longest(both, 4.0, 1e9) == 9.0


@pytest.mark.parametrize("seed", range(3))
def test_energy_is_saved_within_the_bound(seed: int) -> None:
    dag, seconds = random_case(seed)
    slow = np.stack([seconds, seconds / 0.8], axis=2)
    watts = np.array([10.0, 10.0, 60.0])[:, np.newaxis] * np.array([1.0, 0.6])
    trials = Trials(dag, slow, slow * watts, None, None)
    free = Goal(per_joule=1.0, per_second=0.0, idle_w=20.0)
    reference = trials.first_come(free)
    bound = free._replace(bound_s=1.1 * reference.makespan_s)
    found = trials.best(bound, SMALL)
    plan = trials.schedule(found)
    took = slow[np.arange(len(dag)), plan.worker, trials.point_of[found.mode]]
    assert found.cost < reference.cost
    assert plan.makespan_s <= bound.bound_s
    assert plan.finish_s - plan.start_s == pytest.approx(took)
