"""The contract of policies on all that ship, and that it finds what is wrong with others."""

from collections.abc import Callable, Sequence

import pytest

from legato_rt.errors import InternalError
from legato_rt.future import READY
from legato_rt.node import Node
from legato_rt.policy import POLICIES
from legato_rt.policy.base import Devices, Policy, ReadyQueue
from legato_rt.policy.steal import Steal
from legato_rt.testing import POLICY_CHECKS, Stage, check_policy
from legato_rt.testing.policies import MakePolicy


@pytest.mark.parametrize("site", [True, False], ids=["told of the machine", "told nothing"])
@pytest.mark.parametrize("check", POLICY_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", POLICIES)
def test_it_fulfils_the_contract(
    name: str, check: Callable[[MakePolicy, bool], None], site: bool
) -> None:
    check(POLICIES[name], site)


def test_the_whole_suite_runs_at_once() -> None:
    check_policy(lambda: Steal())


class Loses(Policy):
    """Forgets what a worker made ready."""

    def push(self, node: Node, devices: Devices, by: int) -> int | None:
        return super().push(node, devices, by) if by < 0 else None


class IgnoresDevices(Policy):
    """Gives a worker whatever there is."""

    def pop(self, worker: int) -> Node | None:
        nodes = (queue.pop() for queue in (*self.shared.values(), *self.mine))
        return next((node for node in nodes if node is not None), None)


class IgnoresPriorities(Policy):
    """First come, first served."""

    def push(self, node: Node, devices: Devices, by: int) -> int | None:
        able = self.classes.get(devices) or self._new_class(devices)
        assert able
        self.shared[devices].plain.append(node)
        return None


class _KeepsCancelled(ReadyQueue):
    def pop(self) -> Node | None:
        return self.plain.popleft() if self.plain else super().pop()


class KeepsCancelled(Policy):
    """Does not look at the state of a node."""

    def _new_class(self, devices: Devices) -> list[int]:
        able = super()._new_class(devices)
        for i in able:
            self.sources[i].remove(self.shared[devices])
        self.shared[devices] = _KeepsCancelled()
        for i in able:
            self.sources[i].append(self.shared[devices])
        return able


class Twice(Policy):
    """Queues a node in two places."""

    def push(self, node: Node, devices: Devices, by: int) -> int | None:
        super().push(node, devices, by)
        return super().push(node, devices, by)

    def pop(self, worker: int) -> Node | None:
        for queue in self.sources[worker]:
            if queue.plain:
                return queue.plain.popleft()
        return super().pop(worker)


class DrainsNothing(Policy):
    """Keeps what waits."""

    def drain(self) -> list[Node]:
        return []


class SaysNothing(Policy):
    """Lets workers sleep while there is work."""

    def has_work(self, worker: int) -> bool:
        return False


class Hides(Steal):
    """Puts tasks where only one worker looks, and does not wake it."""

    steals = False

    def push(self, node: Node, devices: Devices, by: int) -> int | None:
        super().push(node, devices, by)
        return None

    def place(self, node: Node, able: Sequence[int], by: int) -> int | None:
        return able[-1]


BROKEN = [
    Loses,
    IgnoresDevices,
    IgnoresPriorities,
    KeepsCancelled,
    Twice,
    DrainsNothing,
    SaysNothing,
    Hides,
]


@pytest.mark.parametrize("policy", BROKEN)
def test_what_is_wrong_is_found(policy: type[Policy]) -> None:
    with pytest.raises((AssertionError, InternalError)):
        check_policy(policy)


def test_what_is_wrong_is_told_with_the_story_of_the_node() -> None:
    with pytest.raises(AssertionError, match=r"Loses lost \d+ nodes.*waited for by"):
        check_policy(Loses)
    with pytest.raises(AssertionError, match=r"gave a worker of .* what it cannot run: on_"):
        check_policy(IgnoresDevices)


@pytest.mark.parametrize("name", POLICIES)
def test_what_one_end_releases_starts_by_priority(name: str) -> None:
    """Also where a worker could go straight on with the first of it."""
    stage = Stage(POLICIES[name](), ["cpu"])
    gate = stage.submit("cpu")
    stage.next(0)
    for priority in (-1, 0, 4, 2):
        stage.submit("cpu", priority, [gate])
    while stage.running:
        stage.finish(0)
    assert [node.options.priority for node in stage.started] == [0, 4, 2, 0, -1]


@pytest.mark.parametrize("name", POLICIES)
def test_a_node_that_its_device_cannot_take_goes_to_another(name: str) -> None:
    stage = Stage(POLICIES[name](), ["cpu", "accelerator"])
    node = stage.submit("both")
    worker = 0 if stage.next(0) is node else 1
    if worker:
        assert stage.next(1) is node
    stage.tick()
    assert stage.scheduler.retreat(node, worker)
    assert node.state == READY
    del stage.running[worker]
    stage.started.clear()
    assert stage.next(worker) is None
    assert stage.next(1 - worker) is node
    assert not stage.scheduler.retreat(node, 1 - worker)
    stage.finish(1 - worker)
    stage.settled()
