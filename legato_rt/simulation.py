"""`simulate`: a recorded graph in virtual time, decided by the scheduler that runs programs."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from legato_rt.costs import CostModel, Table
from legato_rt.errors import UsageError
from legato_rt.executor.timeline import Disturbance, Run, Timeline
from legato_rt.formats.recorded import GraphRecord
from legato_rt.future import FINISHED
from legato_rt.machine import Machine
from legato_rt.node import Node, Scope
from legato_rt.objective import TIME, Objective, make_objective
from legato_rt.placement import Choice, Plan
from legato_rt.policy import make_policy
from legato_rt.policy.base import Policy
from legato_rt.scheduler import Scheduler
from legato_rt.shipping import Shipping
from legato_rt.site import Everywhere, Site
from legato_rt.task import DEFAULTS, Task, Variant
from legato_rt.trace import Record, Trace


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """What a simulated run came to.

    Attributes
    ----------
    makespan_s : float
        From the start until the last task is over.
    energy_j : dict of str to dict of str to float
        Modelled joules of each device by cause: ``active``, ``idle``, ``transfer``.
    trace : Trace
        A record of every run.
    failed : tuple of str
        Tasks that did not finish.
    """

    makespan_s: float
    energy_j: dict[str, dict[str, float]]
    trace: Trace
    failed: tuple[str, ...]

    @property
    def joules(self) -> float:
        """All of it."""
        return sum(sum(causes.values()) for causes in self.energy_j.values())


def simulate(
    record: GraphRecord,
    machine: Machine,
    costs: CostModel | None = None,
    policy: str | Policy = "eft",
    *,
    beliefs: CostModel | None = None,
    objective: str | Objective = TIME,
    power_cap_w: float | None = None,
    transfers: bool = True,
    disturbance: Disturbance | None = None,
    seed: int = 0,
) -> SimulationResult:
    """Run a recorded graph on a machine in virtual time.

    Parameters
    ----------
    costs, beliefs : CostModel, optional
        How long tasks take, by default what the record says; and what the policy predicts with and
        learns into, by default the same.
    power_cap_w : float, optional
        What the machine may draw at any time, for policies that keep to one.
    transfers : bool
        Whether data must be brought to where a task runs.

    Raises
    ------
    UsageError
        If a task has no time on any device.
    """
    truth = costs if costs is not None else Table.of(record.tasks)
    believed = beliefs if beliefs is not None else truth
    data = Shipping(machine, record) if transfers else Everywhere()
    site = Site(machine, believed, make_objective(objective), power_cap_w, data, True, seed)
    nodes = make_nodes(record, machine, truth)
    timeline = Timeline(_scheduler(make_policy(policy), site), site, truth, data, disturbance)
    _play(timeline, record, nodes)
    return _summary(machine, nodes, timeline)


def _scheduler(policy: Policy, site: Site) -> Scheduler:
    policy.equip(site)
    workers = [device.name for device in site.machine.devices for _ in range(device.workers)]
    return Scheduler(policy, workers)


def _play(timeline: Timeline, record: GraphRecord, nodes: list[Node]) -> None:
    policy = timeline.scheduler.policy
    if policy.plans:
        policy.foresee(nodes, record.dag())
    timeline.open()
    for node, task in zip(nodes, record.tasks, strict=True):
        timeline.scheduler.submit(node, [nodes[i] for i in task.predecessors] or None, None)
    timeline.settle()
    while timeline.step():
        pass


def make_nodes(record: GraphRecord, machine: Machine, costs: CostModel) -> list[Node]:
    """A node for each task of a record; it can run where the costs have a time for it.

    Raises
    ------
    UsageError
        If that is nowhere.
    """
    scope = Scope(None, None)
    kinds = {device.name: (device.kind,) for device in machine.devices}
    plans: dict[str, Plan] = {}
    choices: dict[str, Choice] = {}
    nodes = []
    for number, task in enumerate(record.tasks):
        name = task.cost_name
        if name not in plans:
            plans[name] = Plan(_stand_in(name, machine), kinds, False)
        node = Node(scope, number, plans[name], (), None, DEFAULTS, sys._getframe())
        if name not in choices:
            choices[name] = _able(node, machine, costs)
        node.choice = choices[name]
        nodes.append(node)
    return nodes


def _stand_in(name: str, machine: Machine) -> Task[..., Any]:
    """A task without a body, with a variant for each kind of device."""
    made = Task(_nothing, directions={}, name=name)
    made.variants = tuple(
        Variant(k, _nothing, None) for k in dict.fromkeys(d.kind for d in machine.devices)
    )
    return made


def _nothing() -> None:
    """What a task of a recorded graph does; its time is all that counts."""


def _able(node: Node, machine: Machine, costs: CostModel) -> Choice:
    variants = {variant.kind: variant for variant in node.task.variants}
    able = {
        device.name: variants[device.kind]
        for device in machine.devices
        if costs.estimate(node, device, variants[device.kind], "", 1) is not None
    }
    if not able:
        raise UsageError(f"no time is given for {node.task.name} on any device of the machine")
    return Choice(able)


def _summary(machine: Machine, nodes: list[Node], timeline: Timeline) -> SimulationResult:
    end = max((run.stop_s for run in timeline.runs), default=0.0)
    energy: dict[str, dict[str, float]] = {}
    for device in machine.devices:
        runs = [r for r in timeline.runs if timeline.devices[r.worker].name == device.name]
        busy = sum(run.stop_s - run.start_s - run.waited_s for run in runs)
        energy[device.name] = {
            "active": sum(run.joules for run in runs),
            "idle": max(end * device.workers - busy, 0.0) * device.power.idle_w,
            "transfer": timeline.data.joules.get(device.name, 0.0),
        }
    records = [_record(run) for run in timeline.runs]
    failed = tuple(node.title for node in nodes if node.state != FINISHED)
    names = [device.name for device in timeline.devices]
    return SimulationResult(end, energy, Trace(names, records), failed)


def _record(run: Run) -> Record:
    node = run.node
    assert node.variant is not None
    start, stop = round(run.start_s * 1e9), round(run.stop_s * 1e9)
    return Record(node.seq, node.task.name, node.variant.kind, run.worker, start, stop, run.ok)
