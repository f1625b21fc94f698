"""The devices that a runtime takes into use."""

from __future__ import annotations

import contextlib

from legato_rt.backend import backends
from legato_rt.errors import SettingError
from legato_rt.executor.base import Slot
from legato_rt.machine import Machine
from legato_rt.settings import Settings
from legato_rt.task import variant_kinds


def choose_machine(settings: Settings) -> Machine:
    """The devices that the settings ask for, or all that any task of the process could use.

    Raises
    ------
    SettingError
        If one is not there, saying what its driver lacks.
    """
    if settings.devices is None:
        # A driver that no task could use is not even loaded: that would take longer than many runs.
        kinds = {b.kind for b in backends().values() if variant_kinds.intersection(b.runs)}
    else:
        kinds = {name.split(":")[0] for name in settings.devices}
    drivers = backends()
    for kind in sorted(kinds - drivers.keys()):
        raise SettingError(
            f"no device {kind!r}: there are drivers for {', '.join(sorted(drivers))}"
        )
    machine = Machine.discover(kinds)
    for kind in sorted(kinds - {device.kind for device in machine.devices}):
        if settings.devices is not None:
            why = "; ".join(drivers[kind].problems()) or "its driver finds none"
            raise SettingError(f"no device of kind {kind!r}: {why}")
    machine = machine.select(settings.devices)
    if settings.workers is not None:
        machine = machine.with_workers("cpu", settings.workers)
    if not machine.devices:
        raise SettingError("there is no device to run on")
    return machine


def close_slots(slots: list[Slot]) -> None:
    """Give the devices back."""
    for session in {id(slot.session): slot.session for slot in slots}.values():
        session.close()


def open_slots(machine: Machine) -> list[Slot]:
    """Take all devices of a machine into use, or none."""
    slots: list[Slot] = []
    for device in machine.devices:
        try:
            session = backends()[device.kind].open(device)
        except BaseException:
            close_slots(slots)
            raise
        for number in range(device.workers):
            slots.append(
                Slot(
                    len(slots),
                    device,
                    session,
                    number,
                    device.name,
                    direct=getattr(session, "direct", False),
                    has_memory=getattr(session, "memory", None) is not None,
                    turn=getattr(session, "turn", contextlib.nullcontext()),
                )
            )
    return slots
