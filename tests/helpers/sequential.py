"""The oracle: runs a program with every submit on the spot, on data of its own.

It shares no code with the runtime.  What it adds to plain execution is what a failure means: data
that a failed task should have written is missing, and who needs it fails too, until it is
overwritten or the program has heard of the failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.helpers.bodies import PlannedError, digest, fingerprint, places, world
from tests.helpers.engine import Engine, Frame, use
from tests.helpers.programs import Op, Program

Roots = frozenset[str]


@dataclass(eq=False)
class Done:
    """A future that is done."""

    key: str
    state: str = "ok"
    value: Any = None
    roots: Roots = frozenset()


@dataclass(eq=False)
class Within:
    """What is known of one submitter.

    Attributes
    ----------
    missing : dict of place to Done
        Data that a failed task should have written.
    failures : list of Done
        Failed first-hand.
    """

    missing: dict[Any, Done] = field(default_factory=dict)
    failures: list[Done] = field(default_factory=list)


class Sequential(Engine):
    """Runs a program on the spot.

    Parameters
    ----------
    cancelled : set of str
        The tasks that did not run because they were cancelled: that is a matter of time, so it is
        observed and not predicted.
    """

    def __init__(self, program: Program, cancelled: set[str]) -> None:
        super().__init__(program)
        self.bases = world()
        self.done: dict[str, Done] = {}
        self._cancelled = cancelled
        self._heard: set[str] = set()
        self._kept: list[Any] = []

    def outcome(self) -> tuple[Any, ...]:
        """All that is compared."""
        frame = Frame("", [(item, True) for item in self.bases], scope=Within())
        self.play(frame)
        unheard = {d.key for d in frame.scope.failures if d.key not in self._heard}
        states = {key: _state(done) for key, done in self.done.items()}
        return states, [fingerprint(item) for item in self.bases], self.log, unheard

    def submit(self, frame: Frame, key: str, op: Op, args: Sequence[list[Any]]) -> Done:
        """Run a task, unless something that it needs is missing."""
        done = self.done[key] = Done(key)
        self._kept.append(args)
        within: Within = frame.scope
        roots = {root for a in futures(args) if a.state != "ok" for root in a.roots}
        resolved = resolve(args)
        reads, updates, overwrites = ([p for x in group for p in places(x)] for group in resolved)
        for place in (*reads, *updates):
            if place in within.missing and self._counts(within.missing[place]):
                roots |= within.missing[place].roots
        for place in overwrites:
            within.missing.pop(place, None)
        if key in self._cancelled:
            done.state, done.roots = "cancelled", frozenset([key])
        elif roots:
            done.state, done.roots = "dependency", frozenset(roots)
        else:
            self._run(done, frame, op, resolved)
        for place in (*updates, *overwrites):
            within.missing.pop(place, None)
            if done.state != "ok":
                within.missing[place] = done
        if done.state == "failed":
            within.failures.append(done)
        return done

    def _run(self, done: Done, frame: Frame, op: Op, resolved: Sequence[list[Any]]) -> None:
        inside = Within()
        try:
            value = self.body(done.key, op, resolved, self.visible(frame), inside)
            copied = op.result == "alias" and isinstance(value, np.ndarray)
            done.value = np.array(value) if copied else value
            unheard = [d for d in inside.failures if d.key not in self._heard]
        except PlannedError:
            done.state = "failed"
        else:
            if unheard:
                done.state = "failed"
                self._heard.update(d.key for d in unheard)
        if done.state == "failed":
            done.value, done.roots = None, frozenset([done.key])

    def _counts(self, missing: Done) -> bool:
        """Whether a failure is news to the program."""
        return not missing.roots <= self._heard

    def wait(self, frame: Frame) -> None:
        """Nothing to wait for."""

    def ask(self, frame: Frame, future: Done) -> Any:
        """The value, or how it ended."""
        if future.state == "ok":
            return digest(future.value)
        self._heard.update(future.roots)
        return future.state

    def reclaim(self, frame: Frame, item: Any) -> bool:
        """Whether the data is there; its failures are heard of now."""
        missing = frame.scope.missing
        found = [missing[p] for p in places(item) if p in missing]
        news = [done for done in found if self._counts(done)]
        for done in news:
            self._heard.update(done.roots)
        return not news

    def lend(self, frame: Frame, item: Any, mode: str, which: int) -> Any:
        """Use the data."""
        if mode == "out":
            for place in places(item):
                frame.scope.missing.pop(place, None)
        elif not self.reclaim(frame, item):
            return "unwritten"
        return use(item, mode, which)

    def cancel(self, frame: Frame, futures: list[Done]) -> None:
        """Note what was cancelled: it is no news to what is submitted from now on."""
        self._heard.update(future.key for future in futures if future.state == "cancelled")


def futures(item: Any) -> Iterator[Done]:
    """Futures in an argument."""
    if isinstance(item, Done):
        yield item
    elif isinstance(item, list | tuple | dict):
        for part in item.values() if isinstance(item, dict) else item:
            yield from futures(part)


def resolve(item: Any) -> Any:
    """An argument with values in place of futures."""
    if isinstance(item, Done):
        return item.value
    if not any(True for _ in futures(item)):
        return item
    if isinstance(item, dict):
        return {key: resolve(part) for key, part in item.items()}
    return type(item)(resolve(part) for part in item)


def _state(done: Done) -> Any:
    if done.state == "ok":
        return "ok", fingerprint(done.value)
    return (done.state, done.roots) if done.state == "dependency" else done.state
