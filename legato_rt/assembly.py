"""The parts of a runtime, made from its settings and put together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from legato_rt import history_store
from legato_rt.equipment import choose_machine, close_slots, open_slots
from legato_rt.executor import executor_class
from legato_rt.executor.base import Executor, Slot
from legato_rt.history import History
from legato_rt.invariants import CheckedScheduler
from legato_rt.ledger import Ledger
from legato_rt.lending import Lending
from legato_rt.live import Replicas
from legato_rt.machine import Machine
from legato_rt.objective import TIME, Objective
from legato_rt.policy import make_policy
from legato_rt.policy.base import Policy
from legato_rt.residence import Residence
from legato_rt.scheduler import Scheduler
from legato_rt.settings import Settings
from legato_rt.site import Everywhere, Site, Whereabouts
from legato_rt.strict import Guard


@dataclass
class Parts:
    """What a runtime consists of.

    Attributes
    ----------
    accepts : dict of str to tuple of str
        Kinds of variants that each device runs.
    residence : Residence or None
        What the memories of the devices cannot take.
    guard : Guard or None
        Under ``strict``.
    costs_path : Path or None
        Where learned costs are kept.
    """

    machine: Machine
    slots: list[Slot]
    scheduler: Scheduler
    executor: Executor
    lending: Lending
    ledger: Ledger
    accepts: dict[str, tuple[str, ...]]
    residence: Residence | None
    guard: Guard | None
    costs_path: Path | None

    def close(self) -> None:
        """End the workers, give the devices back and keep what was learned."""
        self.executor.stop()
        close_slots(self.slots)
        if self.costs_path is not None and isinstance(self.executor.costs, History):
            history_store.save(self.executor.costs, self.costs_path)
        self.ledger.close()


def assemble(
    runtime: Any,
    settings: Settings,
    policy: Policy | None,
    objective: Objective,
    validate: bool,
) -> Parts:
    """Take the devices into use and make a scheduler and an executor for them.

    Raises
    ------
    SettingError
        If a setting names what is not there; nothing stays open then.
    """
    executor_type = executor_class(settings.executor)
    machine = choose_machine(settings)
    policy = policy or _default_policy(machine, objective, settings)
    slots = open_slots(machine)
    try:
        parts = _connect(
            runtime, settings, policy, objective, validate, machine, slots, executor_type
        )
    except BaseException:
        close_slots(slots)
        raise
    parts.executor.start()
    return parts


def _connect(
    runtime: Any,
    settings: Settings,
    policy: Policy,
    objective: Objective,
    validate: bool,
    machine: Machine,
    slots: list[Slot],
    executor_type: type[Executor],
) -> Parts:
    limits = {
        slot.name: settings.memory_limit or slot.device.memory_bytes
        for slot in slots
        if slot.has_memory
    }
    replicas = Replicas()
    costs, path = _costs(settings) if policy.timed else (None, None)
    if costs is not None:
        data: Whereabouts = replicas if limits else Everywhere()
        policy.equip(Site(machine, costs, objective, settings.power_cap_w, data))
    kind = CheckedScheduler if validate else Scheduler
    scheduler = kind(policy, [slot.name for slot in slots])
    executor = executor_type(runtime, scheduler, slots)
    executor.costs = costs
    replicas.transfers = executor.transfers
    guard = Guard(scheduler.graph) if settings.strict else None
    return Parts(
        machine,
        slots,
        scheduler,
        executor,
        Lending(executor, guard),
        Ledger(executor, machine, settings.trace),
        {device.name: device.accepts for device in machine.devices},
        Residence(limits) if limits else None,
        guard,
        path,
    )


def _default_policy(machine: Machine, objective: Objective, settings: Settings) -> Policy:
    """The policy where none was named: one that predicts, where there is something to choose."""
    if settings.policy is not None:
        return make_policy(settings.policy)
    if settings.power_cap_w is not None:
        return make_policy("powercap")
    if objective != TIME:
        return make_policy("energy")
    return make_policy("eft" if len(machine.devices) > 1 else "steal")


def _costs(settings: Settings) -> tuple[History, Path | None]:
    """What was learned so far, and where what is learned now is kept."""
    if settings.costs == "off":
        return History(), None
    path = history_store.default_path() if settings.costs == "auto" else Path(settings.costs)
    return history_store.load(path), path
