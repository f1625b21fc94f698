"""The contract of policies: what any way of giving ready tasks to workers must keep.

Every check runs with the policy told of the machine (`Policy.equip`) and without.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np

from legato_rt.access import IN, INOUT, OUT
from legato_rt.future import CANCELLED, FINISHED
from legato_rt.node import Node
from legato_rt.order import Dag
from legato_rt.policy.base import Policy
from legato_rt.testing.stage import KINDS, Stage, expect

MakePolicy = Callable[[], Policy]
SEEDS = range(5)


def check_policy(make: MakePolicy) -> None:
    """Hold a policy to its contract.

    Parameters
    ----------
    make : callable
        Makes a fresh policy, for instance its class.

    Raises
    ------
    AssertionError
        Saying what the policy did, with the story of the node.
    InternalError
        If it leads the scheduler into a state that must not be.
    """
    for check in POLICY_CHECKS:
        for site in (True, False):
            check(make, site)


def every_node_runs_once(make: MakePolicy, site: bool) -> None:
    """Nothing is lost, and nothing starts on a device that cannot run it."""
    for seed in SEEDS:
        random = Random(seed)
        stage = Stage(make(), site=site)
        _grow(stage, random, 60)
        stage.play(random)
        stage.settled()
        ran = set(stage.started)
        for node in stage.nodes:
            expect(node in ran and node.state == FINISHED, f"did not run: {node.story}")


def what_fails_or_is_cancelled_disturbs_nobody(make: MakePolicy, site: bool) -> None:
    """Cancelled nodes are skipped, and the others still get their turn."""
    for seed in SEEDS:
        random = Random(seed)
        stage = Stage(make(), site=site)
        for _ in range(4):
            _grow(stage, random, 15)
            for node in random.sample(stage.nodes, 4):
                stage.cancel(node)
            for worker in list(stage.awake):
                stage.next(worker)
        stage.play(random, failures=0.1)
        stage.settled()
        ran = [node for node in stage.started if node.state == CANCELLED]
        expect(not ran, f"started although it was cancelled: {[n.story for n in ran]}")


def cancelled_nodes_are_skipped(make: MakePolicy, site: bool) -> None:
    """A worker gets the next one that is still ready, and nothing if there is none."""
    stage = Stage(make(), ["cpu"], site)
    nodes = [stage.submit("cpu", priority) for priority in (0, 3, 3, 0, -2)]
    for node in (nodes[1], nodes[0], nodes[4]):
        expect(stage.cancel(node), f"a ready node is not cancelled: {node.story}")
    expect(stage.next(0) is nodes[2], "the first that is still ready comes first")
    expect(stage.finish(0) is nodes[3], "the next that is still ready comes next")
    expect(not stage.policy.has_work(0), "has_work() counts nodes that are cancelled")
    expect(stage.finish(0) is None, "a node came twice")
    stage.settled()


def higher_priorities_start_first(make: MakePolicy, site: bool) -> None:
    """Among ready nodes, whoever made them ready."""
    for worker, kind in enumerate(("cpu", "accelerator")):
        for released in (False, True):
            stage = Stage(make(), ["cpu", "accelerator"], site)
            gate = stage.submit(kind, priority=100)
            expect(stage.next(worker) is gate, "a single node goes to the worker that can run it")
            for priority in (0, 3, -1, 7, 0, 20, 3, -5, 1):
                stage.submit(kind, priority, [gate] if released else [])
            while stage.running:
                stage.finish(worker)
            order = [node.options.priority for node in stage.started]
            expect(order == sorted(order, reverse=True), f"priorities start in the order {order}")
            stage.settled()


def has_work_tells_the_truth(make: MakePolicy, site: bool) -> None:
    """`Policy.has_work` says whether `Policy.pop` would find a node."""
    for seed in SEEDS:
        random = Random(seed)
        stage = Stage(make(), site=site)
        _grow(stage, random, 20)
        for _ in range(100):
            worker = random.randrange(len(stage.workers))
            if worker in stage.running:
                stage.finish(worker, onward=False)
                continue
            stage.tick()
            said, node = stage.policy.has_work(worker), stage.next(worker)
            expect(said == (node is not None), f"has_work({worker}) is {said}, pop gives {node}")
        stage.play(random)
        stage.settled()


def drain_returns_what_waits(make: MakePolicy, site: bool) -> None:
    """All nodes that are ready, each once; the others come when they are ready."""
    stage = Stage(make(), site=site)
    gate = stage.submit("cpu")
    for worker in (0, 1):
        stage.next(worker)
    (busy,) = stage.running
    behind = [stage.submit(kind, priority, [gate]) for kind in KINDS for priority in (0, 2)]
    ready = [stage.submit(kind, priority) for kind in KINDS for priority in (-1, 0, 5)]
    for released in (ready, behind):
        drained = stage.policy.drain()
        expect(len(drained) == len(set(drained)), "drain() returns a node twice")
        expect(set(drained) == set(released), f"drain() returns {drained} and not {released}")
        for node in drained:
            stage.cancel(node)
        expect(not any(map(stage.policy.has_work, range(3))), "has_work() after drain()")
        if busy in stage.running:
            stage.finish(busy, onward=False)
    stage.play(Random(0))
    stage.settled()


def closing_ends_all(make: MakePolicy, site: bool) -> None:
    """`Scheduler.cancel_all` in the middle of a run leaves only what runs."""
    random = Random(1)
    stage = Stage(make(), site=site)
    _grow(stage, random, 40)
    for worker in range(3):
        stage.next(worker)
    stage.scheduler.cancel_all()
    stage.obey()
    stage.play(random)
    stage.settled()


def a_known_graph_runs(make: MakePolicy, site: bool) -> None:
    """A policy that `plans` is given whole graphs, also a second one while others run."""
    for seed in SEEDS[:1]:
        random = Random(seed)
        stage = Stage(make(), site=site)
        for _ in range(2):
            nodes: list[Node] = []
            edges: list[tuple[int, int]] = []
            for i in range(25):
                before = random.sample(range(i), min(i, random.randrange(3)))
                nodes.append(stage.node(random.choice(KINDS), 0, [nodes[k] for k in before]))
                edges += [(k, i) for k in before]
            if stage.policy.plans:
                dag = Dag.from_edges(len(nodes), [a for a, _ in edges], [b for _, b in edges])
                stage.policy.foresee(nodes, dag)
            for node in nodes:
                stage.add(node)
            _grow(stage, random, 5)
            for worker in list(stage.awake):
                stage.next(worker)
        stage.play(random, failures=0.05)
        stage.settled()


def _grow(stage: Stage, random: Random, count: int) -> None:
    """Submit nodes of all kinds, some of which wait for others."""
    data = np.zeros(6)
    for _ in range(count):
        known = stage.nodes[-10:]
        futures = random.sample(known, min(len(known), random.randrange(3)))
        part = data[random.randrange(5) :][: random.randrange(3)]
        accesses = [(part, random.choice((IN, OUT, INOUT)))] if random.random() < 0.3 else []
        priority = random.choice((0, 0, 0, 1, 5, -3))
        stage.submit(random.choice(KINDS), priority, futures, accesses)


POLICY_CHECKS: tuple[Callable[[MakePolicy, bool], None], ...] = (
    every_node_runs_once,
    what_fails_or_is_cancelled_disturbs_nobody,
    cancelled_nodes_are_skipped,
    higher_priorities_start_first,
    has_work_tells_the_truth,
    drain_returns_what_waits,
    closing_ends_all,
    a_known_graph_runs,
)
"""Each is called with a maker of policies, and with whether they are told of the machine."""
