"""What a runtime did: the records of its workers, as a trace and as a report."""

from __future__ import annotations

import time

from legato_rt.errors import UsageError
from legato_rt.executor.base import Executor
from legato_rt.machine import Machine
from legato_rt.metering import Meters
from legato_rt.report import Report, summarise
from legato_rt.trace import Record, Trace


class Ledger:
    """Reads what the workers of an executor wrote down."""

    def __init__(self, executor: Executor, machine: Machine, keeps_trace: bool) -> None:
        self._executor = executor
        self._machine = machine
        self._keeps_trace = keeps_trace
        self._meters = Meters.open(machine.devices)
        self._opened = time.perf_counter()
        self._closed: float | None = None

    def close(self) -> None:
        """Stop the clock and the meters."""
        self._closed = time.perf_counter()
        self._meters.close()

    def trace(self) -> Trace:
        """All records; raises `UsageError` if they were not kept."""
        if not self._keeps_trace:
            raise UsageError("Runtime(trace=True) keeps a trace; this runtime does not")
        records = [
            Record(seq, plan.task.name, variant.name, slot, start, stop, ok)
            for worker in list(self._executor.workers)
            for seq, plan, variant, slot, start, stop, ok in list(worker.log)
        ]
        transfers = self._executor.transfers
        copies = transfers.copies if transfers is not None else ()
        return Trace([slot.name for slot in self._executor.slots], records, copies)

    def report(self) -> Report:
        """The summary up to now, or up to the end."""
        by_device: dict[tuple[str, str], tuple[int, int, int]] = {}
        for (name, slot), more in self._executor.totals().items():
            place = name, self._executor.slots[slot].name
            by_device[place] = _plus(by_device.get(place, _NOTHING), more)
        end = self._closed if self._closed is not None else time.perf_counter()
        coarse = self._executor.scheduler.graph.registry.coarse
        meters = self._meters.measurements()
        return summarise(end - self._opened, self._machine.devices, by_device, coarse, meters)


_NOTHING = (0, 0, 0)


def _plus(a: tuple[int, int, int], b: tuple[int, int, int]) -> tuple[int, int, int]:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]
