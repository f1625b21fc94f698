"""The scheduler without threads: any order of calls keeps its invariants and loses nothing."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from legato_rt.access import IN, INOUT, OUT
from legato_rt.errors import DependencyError, IllegalTransition, InternalError, LegatoError
from legato_rt.future import CANCELLED, FAILED, FINISHED, READY, RUNNING, WAITING
from legato_rt.node import Node, Scope
from legato_rt.policy import POLICIES
from legato_rt.policy.base import Devices, Policy
from legato_rt.testing import Stage

kinds = st.sampled_from(["cpu", "accelerator", "both", "both"])
priorities = st.sampled_from([0, 0, 0, 1, 7, -2])
modes = st.sampled_from([IN, OUT, INOUT])
slices = st.builds(slice, st.integers(0, 6), st.integers(2, 8), st.sampled_from([None, 1, 2]))
accesses = st.lists(st.tuples(slices, modes), max_size=2)
which = st.integers(0, 11)


class SchedulerMachine(RuleBasedStateMachine):
    """Calls the scheduler in any order that an executor could."""

    policy: type[Policy]

    @initialize(site=st.booleans(), accelerators=st.integers(0, 2), cpus=st.integers(1, 3))
    def open(self, site: bool, accelerators: int, cpus: int) -> None:
        workers = ["cpu"] * cpus + ["accelerator"] * accelerators
        self.stage = Stage(self.policy(), workers, site)
        self.data = np.zeros(8)
        self.conflicts: list[tuple[Node, list[tuple[slice, int]]]] = []
        self.waiting: list[Node] = []  # bodies that gave their worker away

    # -- what the program does --------------------------------------------------------------

    @rule(kind=kinds, priority=priorities, futures=st.lists(which, max_size=3), parts=accesses)
    def submit(
        self, kind: str, priority: int, futures: list[int], parts: list[tuple[slice, int]]
    ) -> None:
        stage = self.stage
        if kind == "accelerator" and kind not in stage.workers:
            kind = "both"
        recent = stage.nodes[-12:]
        needed = [recent[i % len(recent)] for i in dict.fromkeys(futures) if recent]
        data = [(self.data[part], mode) for part, mode in parts]
        node = stage.submit(kind, priority, list(dict.fromkeys(needed)), data)
        self.conflicts.append((node, parts))

    @rule(back=which)
    def cancel(self, back: int) -> None:
        if not self.stage.nodes:
            return
        node = self.stage.nodes[-1 - back % len(self.stage.nodes)]
        could = node.state in (WAITING, READY)
        was = node.state == CANCELLED
        assert self.stage.cancel(node) == (could or was)
        assert (node.state == CANCELLED) == (could or was)

    # -- what the workers do ----------------------------------------------------------------

    @rule(number=which, woken=st.booleans())
    def next(self, number: int, woken: bool) -> None:
        stage = self.stage
        idle = [i for i in range(len(stage.workers)) if i not in stage.running]
        idle = [i for i in idle if i in stage.awake] if woken else idle
        if idle:
            worker = idle[number % len(idle)]
            node = stage.next(worker)
            assert node is None or (node.state == RUNNING and node.worker == worker)

    @rule(number=which, onward=st.booleans())
    def finish(self, number: int, onward: bool) -> None:
        if (worker := self._busy(number)) is None:
            return
        node = self.stage.running[worker]
        following = self.stage.finish(worker, onward)
        assert node.state == FINISHED
        assert onward or following is None

    @rule(number=which, onward=st.booleans())
    def fail(self, number: int, onward: bool) -> None:
        if (worker := self._busy(number)) is None:
            return
        node = self.stage.running[worker]
        self.stage.fail(worker, onward)
        assert node.state == FAILED
        assert isinstance(node.value, LegatoError)

    @rule(number=which)
    def retreat(self, number: int) -> None:
        stage, worker = self.stage, self._busy(number)
        if worker is None:
            return
        node = stage.running[worker]
        assert node.choice is not None
        elsewhere = node.choice.devices - {stage.workers[worker]}
        stage.tick()
        assert stage.scheduler.retreat(node, worker) == bool(elsewhere)
        if elsewhere:
            del stage.running[worker]
            stage.started.remove(node)
            stage.awake.add(worker)
        stage.obey()

    @rule(number=which, back=which)
    def lend_and_take(self, number: int, back: int) -> None:
        """A body waits for a node, and its worker runs that node inside it, if it can."""
        stage, worker = self.stage, self._busy(number)
        if worker is None:
            return
        node = stage.nodes[-1 - back % len(stage.nodes)]
        choice = node.choice
        fits = choice is not None and stage.workers[worker] in choice.devices
        could = node.state == READY and fits
        stage.tick()
        assert stage.scheduler.take(node, worker) == could
        if could:
            stage.started.append(node)
            stage.tick()
            assert stage.scheduler.finish(node, 1, worker, onward=False) is None
        stage.obey()

    @rule(number=which)
    def wait(self, number: int) -> None:
        """A body sleeps, and its worker looks for something else."""
        if (worker := self._busy(number)) is not None:
            self.waiting.append(self.stage.running.pop(worker))
            self.stage.awake.add(worker)

    @rule(number=which)
    def resume(self, number: int) -> None:
        """A body that slept goes on, on a parked worker of its device."""
        parked = self._parked()
        if parked:
            self._occupy(parked[number % len(parked)])

    def _parked(self) -> list[int]:
        """Parked workers on which the body that slept first can go on."""
        workers, parking = self.stage.workers, self.stage.scheduler.parking
        if not self.waiting:
            return []
        device = workers[self.waiting[0].worker]
        return [i for i, name in enumerate(workers) if name == device and parking.is_parked(i)]

    def _occupy(self, worker: int) -> None:
        self.stage.tick()
        self.stage.scheduler.occupy(worker)
        self.stage.awake.discard(worker)
        self.stage.running[worker] = self.waiting.pop(0)
        self.stage.obey()

    def _busy(self, number: int) -> int | None:
        busy = sorted(self.stage.running)
        return busy[number % len(busy)] if busy else None

    # -- what always holds ------------------------------------------------------------------

    @invariant()
    def everything_is_in_order(self) -> None:
        if not hasattr(self, "stage"):
            return
        self.stage.scheduler.check()
        at_work = [(n, parts) for n, parts in self.conflicts if n.state == RUNNING]
        for index, (node, parts) in enumerate(at_work):
            for other, others in at_work[:index]:
                assert not self._conflict(parts, others), f"{node.story}; {other.story}"
        for node in self.stage.nodes:
            if node.state == FAILED and isinstance(node.value, DependencyError):
                assert node.value.roots
                assert node not in self.stage.started

    def _conflict(self, ones: list[tuple[slice, int]], others: list[tuple[slice, int]]) -> bool:
        return any(
            (mode | its) & OUT and np.shares_memory(self.data[one], self.data[two])
            for one, mode in ones
            for two, its in others
        )

    def teardown(self) -> None:
        """Everything drains, if only those that were woken look for work."""
        if not hasattr(self, "stage"):
            return
        stage = self.stage
        while stage.awake or stage.running or self.waiting:
            if self.waiting and not stage.running and not stage.awake:
                self._occupy(self._parked()[0])
            for worker in sorted(stage.awake):
                if worker not in stage.running:
                    stage.next(worker)
            for worker in sorted(stage.running):
                stage.finish(worker)
        stage.settled()
        assert not stage.scheduler.nodes
        assert not any(map(stage.policy.has_work, range(len(stage.workers))))
        for node in stage.nodes:
            assert not node.waiting
            assert node.accesses is None or node.state == FINISHED
            assert node.successors is None
            assert node.followers is None


MACHINES = {
    name: type(f"SchedulerMachine_{name}", (SchedulerMachine,), {"policy": policy})
    for name, policy in POLICIES.items()
}


def run(
    machine: type[SchedulerMachine], examples: int, steps: int, phases: Any = tuple(Phase)
) -> None:
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        phases=phases,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    run_state_machine_as_test(machine, settings=chosen)


@pytest.mark.parametrize("name", POLICIES)
def test_any_order_of_calls(name: str) -> None:
    run(MACHINES[name], 80, 30)


@pytest.mark.slow
@pytest.mark.parametrize("name", POLICIES)
def test_many_orders_of_calls(name: str) -> None:
    run(MACHINES[name], 150, 60)


class ForgetsSome(Policy):
    """Does not queue what a worker made ready on another."""

    def push(self, node: Node, devices: Devices, by: int) -> int | None:
        return super().push(node, devices, by) if by < 1 else None


def test_what_a_policy_forgets_is_found() -> None:
    machine = type("Forgetful", (SchedulerMachine,), {"policy": ForgetsSome})
    with pytest.raises(AssertionError, match=r"ForgetsSome lost \d+ nodes"):
        run(machine, 200, 30, phases=(Phase.generate,))


# -- what is not allowed ---------------------------------------------------------------------


def story_of(node: Node) -> str:
    return rf"{node.title} is .*: submitted at .*stage\.py:\d+, waits for .*, worker"


@pytest.mark.parametrize("call", ["finish", "fail"])
@pytest.mark.parametrize("state", ["waiting", "ready", "finished", "failed", "cancelled"])
@pytest.mark.parametrize("name", POLICIES)
def test_what_does_not_run_cannot_end(name: str, state: str, call: str) -> None:
    stage = Stage(POLICIES[name](), ["cpu"])
    node = first = stage.submit("cpu")
    if state == "waiting":
        node = stage.submit("cpu", futures=[first])
    elif state == "cancelled":
        stage.cancel(first)
    elif state in ("finished", "failed"):
        stage.next(0)
        (stage.finish if state == "finished" else stage.fail)(0)
    error = LegatoError("fails")
    arguments: tuple[Any, ...] = (node, error if call == "fail" else 1, 0)
    target = "failed" if call == "fail" else "finished"
    with pytest.raises(IllegalTransition, match=f"cannot go from {state} to {target}: ") as caught:
        getattr(stage.scheduler, call)(*arguments)
    assert caught.match(story_of(node))
    assert isinstance(caught.value, InternalError)


@pytest.mark.parametrize("name", POLICIES)
def test_what_does_not_run_cannot_go_back(name: str) -> None:
    stage = Stage(POLICIES[name](), ["cpu", "accelerator"])
    node = stage.submit("both")
    with pytest.raises(IllegalTransition, match="cannot go from ready to ready: ") as caught:
        stage.scheduler.retreat(node, 0)
    assert caught.match(story_of(node))


class GivesOut(Policy):
    """Gives out again what runs already."""

    def pop(self, worker: int) -> Node | None:
        node = self.given = getattr(self, "given", None) or super().pop(worker)
        return node


def test_a_policy_that_gives_out_what_runs_is_stopped() -> None:
    stage = Stage(GivesOut(), ["cpu", "cpu"])
    node = stage.submit("cpu")
    stage.next(0)
    with pytest.raises(IllegalTransition, match="cannot go from running to running") as caught:
        stage.next(1)
    assert caught.match(story_of(node))


def test_broken_invariants_are_found() -> None:
    stage = Stage(POLICIES["fifo"](), ["cpu"])
    first = stage.submit("cpu")
    second = stage.submit("cpu", futures=[first])
    second.waiting = 2
    with pytest.raises(InternalError, match="1 edges lead to a node that waits for 2"):
        stage.scheduler.check()
    second.waiting = 1
    second.state = READY
    with pytest.raises(InternalError, match="a node has started although it waits"):
        stage.scheduler.check()
    second.state = WAITING
    stage.scheduler.pending = 3
    with pytest.raises(InternalError, match="2 nodes are pending, 3 are counted"):
        stage.scheduler.check()
    stage.scheduler.pending = 2
    stage.scheduler.check()
    first.state = WAITING
    with pytest.raises(InternalError, match="a node waits for nothing"):
        stage.scheduler.check()


def test_a_parent_that_joins_is_over_with_its_children() -> None:
    stage = Stage(POLICIES["fifo"](), ["cpu"])
    parent = stage.submit("cpu")
    stage.next(0)
    outer, stage.scope = stage.scope, Scope(stage, parent)
    parent.scope = stage.scope
    child = stage.submit("cpu")
    stage.scope = outer
    after = stage.submit("cpu", futures=[parent])
    assert stage.finish(0) is child
    with pytest.raises(IllegalTransition, match="cannot go from joining to finished"):
        stage.scheduler.finish(parent, 1, 0)
    assert stage.finish(0) is after
    assert parent.state == FINISHED
    stage.finish(0)
    stage.settled()
