"""What happened: one record for each body that ran, and the file they are saved in."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

FORMAT = "legato_rt.trace/1"


class Record(NamedTuple):
    """One run of a body.

    Attributes
    ----------
    node : int
        Number of the node, in order of submission.
    task, variant : str
    worker : int
        The worker, counted over all devices.
    start_ns, stop_ns : int
        On the clock of `time.perf_counter_ns`.
    ok : bool
        Whether the body returned.
    """

    node: int
    task: str
    variant: str
    worker: int
    start_ns: int
    stop_ns: int
    ok: bool


class Copy(NamedTuple):
    """One copy between memories.

    Attributes
    ----------
    what : str
        ``upload``, ``download`` or ``peer``.
    device : str
        The device copied to, or for a download from.
    nbytes : int
    start_ns, stop_ns : int
        On the clock of `time.perf_counter_ns`.
    """

    what: str
    device: str
    nbytes: int
    start_ns: int
    stop_ns: int


class Trace(Sequence[Record]):
    """Records in the order in which their bodies ended, per worker.

    Parameters
    ----------
    devices : sequence of str
        Device name of each worker.
    records : sequence of Record
    copies : sequence of Copy
    """

    def __init__(
        self, devices: Sequence[str], records: Sequence[Record], copies: Sequence[Copy] = ()
    ) -> None:
        self.devices = list(devices)
        self.copies = list(copies)
        self._records = list(records)

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, index: Any) -> Any:
        return self._records[index]

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trace as JSON; the file appears whole or not at all.

        Times are seconds from the first start.
        """
        path = Path(path)
        origin = min((r.start_ns for r in self), default=0)
        document = {
            "format": FORMAT,
            "workers": [{"worker": i, "device": name} for i, name in enumerate(self.devices)],
            "records": [
                {
                    "node": r.node,
                    "task": r.task,
                    "variant": r.variant,
                    "worker": r.worker,
                    "start_s": (r.start_ns - origin) / 1e9,
                    "stop_s": (r.stop_ns - origin) / 1e9,
                    "ok": r.ok,
                }
                for r in self
            ],
            "copies": [
                {
                    "what": c.what,
                    "device": c.device,
                    "bytes": c.nbytes,
                    "start_s": (c.start_ns - origin) / 1e9,
                    "stop_s": (c.stop_ns - origin) / 1e9,
                }
                for c in self.copies
            ],
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", dir=path.parent, prefix=path.name, suffix=".part", delete=False
        ) as file:
            json.dump(document, file)
        os.replace(file.name, path)
