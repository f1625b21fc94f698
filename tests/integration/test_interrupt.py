"""Interrupts, cancellation and shutdown at any moment: the program ends, and nothing is left."""

import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import legato_rt as lrt
from legato_rt import In, InOut
from legato_rt.policy import POLICIES

HANG_S = 20.0

PREAMBLE = """
import sys
import threading

import numpy as np

import legato_rt as lrt
from legato_rt import InOut

go = threading.Event()
filled = threading.Event()
futures = []


def say(text):
    sys.stdout.write(text + "\\n")
    sys.stdout.flush()


@lrt.task
def hold():
    filled.wait(30)
    say("running")
    assert go.wait(30)


@lrt.task
def parent():
    hold.submit().result()


@lrt.task
def increment(x: InOut):
    x += 1


def fill():
    # What has not started is cancelled, and only then the body that runs goes on.
    x = np.zeros(1)
    first = increment.submit(x)
    first.add_done_callback(lambda _: go.set())
    futures.extend([first, *(increment.submit(x) for _ in range(1000))])
    filled.set()


def report():
    left = [t.name for t in threading.enumerate() if t is not threading.main_thread()]
    say(f"threads {left}, done {all(f.done() for f in futures)}, "
        f"ran {sum(not f.cancelled() for f in futures)}")


try:
"""

PROGRAMS = {
    "at-the-end": """
        with lrt.Runtime(workers=1, policy=policy):
            hold.submit()
            fill()
    """,
    "in-result": """
        with lrt.Runtime(workers=1, policy=policy):
            hold.submit()
            fill()
            futures[-1].result()
    """,
    "in-wait": """
        with lrt.Runtime(workers=1, policy=policy):
            hold.submit()
            fill()
            lrt.wait()
    """,
    "in-the-block": """
        with lrt.Runtime(workers=1, policy=policy):
            hold.submit()
            fill()
            while True:
                threading.Event().wait(0.2)
    """,
    "nested": """
        with lrt.Runtime(workers=1, policy=policy):
            parent.options(priority=1).submit()
            fill()
    """,
    "runtime-in-runtime": """
        with lrt.Runtime(workers=1, policy=policy):
            with lrt.Runtime(workers=1, policy=policy):
                hold.submit()
                fill()
    """,
}


def interrupted(program: str) -> tuple[int, str, str]:
    """Run a program, send SIGINT once it says that a body runs; return how it ended."""
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(lrt.__file__).parents[1])},
    ) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=HANG_S)
        finally:
            process.kill()
    return process.returncode, said + output, errors


@pytest.mark.parametrize("policy", ["fifo", "steal"])
@pytest.mark.parametrize("kind", PROGRAMS)
def test_an_interrupt_ends_a_running_graph(kind: str, policy: str) -> None:
    body = textwrap.indent(textwrap.dedent(PROGRAMS[kind]), "    ")
    program = f"policy = {policy!r}\n{PREAMBLE}{body}\nfinally:\n    report()\n"
    code, output, errors = interrupted(program)
    assert output.splitlines()[0] == "running", errors
    assert errors.rstrip().endswith("KeyboardInterrupt"), errors
    assert code == -signal.SIGINT
    assert output.splitlines()[1:] == ["threads [], done True, ran 0"]


def test_an_interrupt_ends_a_graph_in_the_callers_thread() -> None:
    program = PREAMBLE + textwrap.indent(
        textwrap.dedent("""
            filled.set()
            with lrt.Runtime(executor="serial"):
                hold.submit()
                fill()
        """),
        "    ",
    )
    code, output, errors = interrupted(f"{program}\nfinally:\n    report()\n")
    assert output.splitlines() == ["running", "threads [], done True, ran 0"], errors
    assert errors.rstrip().endswith("KeyboardInterrupt"), errors
    assert code == -signal.SIGINT


# -- at a random moment ---------------------------------------------------------------------------


class Alarm:
    """Sets an event when the given number of bodies has started."""

    def __init__(self, at: int) -> None:
        self.rung = threading.Event()
        self._left = at
        self._lock = threading.Lock()

    def count(self) -> None:
        with self._lock:
            self._left -= 1
            if self._left == 0:
                self.rung.set()


@lrt.task
def grow(alarm: In[Any], x: InOut[Any], depth: int) -> int:
    alarm.count()
    if depth == 0:
        x += 1
        return 1
    half = len(x) // 2
    parts = [grow.submit(alarm, part, depth - 1) for part in (x[:half], x[half:])]
    if depth % 2:
        return sum(part.result() for part in parts)
    return 0


def start_all(alarm: Alarm, x: Any) -> list[Any]:
    return [grow.submit(alarm, x, 4) for _ in range(12)]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(6))
def test_shutdown_at_a_random_moment(seed: int, policy: str) -> None:
    x = np.zeros(16)
    alarm = Alarm(random.Random(seed).randrange(1, 300))
    with pytest.raises(KeyError), lrt.Runtime(workers=1 + seed % 3, policy=policy, validate=True):  # noqa: PT012
        futures = start_all(alarm, x)
        assert alarm.rung.wait(HANG_S)
        raise KeyError("enough")
    assert all(future.done() for future in futures)
    assert (x >= 0).all()
    assert (x <= len(futures)).all()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(6))
def test_cancellation_at_a_random_moment(seed: int, policy: str) -> None:
    draw = random.Random(seed)
    x = np.zeros(16)
    alarm = Alarm(draw.randrange(1, 200))
    with lrt.Runtime(workers=1 + seed % 3, policy=policy, validate=True) as runtime:
        futures = start_all(alarm, x)
        assert alarm.rung.wait(HANG_S)
        for future in draw.sample(futures, 4):
            future.cancel()
        runtime.wait()
        assert all(future.done() for future in futures)
        finished = [future for future in futures if not future.cancelled()]
        for future in finished:
            future.exception()
        grow.submit(alarm, x, 0).result()


@pytest.mark.parametrize("policy", ["fifo", "steal"])
def test_a_runtime_is_closed_by_another_thread(policy: str) -> None:
    x, alarm = np.zeros(16), Alarm(20)
    runtime = lrt.Runtime(workers=2, policy=policy)
    refused: list[Any] = []
    started = start_all(alarm, x)

    def submit_on() -> None:
        try:
            while True:
                started.append(start_all(alarm, x)[-1])
        except lrt.ClosedError as error:
            refused.append(error)

    thread = threading.Thread(target=submit_on)
    thread.start()
    assert alarm.rung.wait(HANG_S)
    runtime.close(cancel=True)
    thread.join(HANG_S)
    assert not thread.is_alive()
    assert refused
    assert all(future.done() for future in started)
