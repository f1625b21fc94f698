"""How a node ends when it does not simply finish, and what its error says."""

from __future__ import annotations

from legato_rt.arguments import holds
from legato_rt.errors import CancelledError, DependencyError, LegatoError, TaskError
from legato_rt.future import CANCELLED, FAILED, FINISHED, deliver, is_delivered
from legato_rt.node import Node, Scope


class PassedOn(Exception):
    """Raised by a body that runs others' bodies: what they failed with is its failure as it is."""

    def __init__(self, failure: LegatoError) -> None:
        super().__init__(str(failure))
        self.failure = failure


def join(node: Node, scope: Scope) -> None:
    """End a node whose children are over: it fails with them unless its body handled that."""
    failures = [error for error in scope.failures if not is_delivered(error)]
    if scope.error is not None:
        node.value = scope.error
    elif failures:
        for error in failures:
            deliver(error, node.seq)
        node.value = TaskError(
            f"{len(failures)} of the tasks that {node.title} (submitted at {node.where}) "
            f"submitted failed, and its body did not ask for their results; first: {failures[0]}",
            task=node.options.name or node.task.name,
            where=node.where,
            variant=node.variant.name if node.variant is not None else "?",
            device="?",
        )
        node.value.__cause__ = failures[0] if len(failures) == 1 else _group(failures)
    elif scope.cut:
        node.value = DependencyError(
            f"{node.title} (submitted at {node.where}) did not finish: the runtime closed before "
            "all the tasks that it submitted had run"
        )
    failed = scope.error is not None or failures or scope.cut
    node.state = FAILED if failed else FINISHED


def _group(failures: list[LegatoError]) -> ExceptionGroup[LegatoError]:
    return ExceptionGroup(f"{len(failures)} tasks failed", failures)


def let_go(node: Node) -> None:
    """Drop the arguments: a future keeps the value alive and nothing else."""
    node.args = ()
    node.kwargs = None


def cancelled(node: Node, moment: int = -1) -> None:
    """End a node that was cancelled before it started."""
    node.state = CANCELLED
    node.value = CancelledError(f"{node.title} (submitted at {node.where}) was cancelled")
    node.value.delivered = moment
    if not node.waiting:
        # Until then what would have used a future's value keeps its place in the order.
        let_go(node)


def doomed(node: Node) -> None:
    """Fail a node that did not start: with its own error, or because of what it needs."""
    node.state = FAILED
    let_go(node)
    if not isinstance(node.value, list):
        return
    failed: list[Node] = node.value
    roots: dict[int, BaseException] = {}
    for other in failed:
        error = other.value
        for root in error.roots if isinstance(error, DependencyError) else (error,):
            roots[id(root)] = root
    names = " and ".join(f"{other.title} (submitted at {other.where})" for other in failed)
    first = "; ".join(dict.fromkeys(str(root).splitlines()[0] for root in roots.values()))
    node.value = DependencyError(
        f"{node.title} (submitted at {node.where}) did not run because {names} did not finish; "
        f"first failed: {first}",
        tuple(roots.values()),
    )
    node.value.__cause__ = next(iter(roots.values()))


def is_past(failed: Node, node: Node) -> bool:
    """Whether the program knew of a failure when it submitted a node that shares data with it.

    What became of the data is then the program's own business; a value that does not exist is not.
    """
    if not is_delivered(failed.value, before=node.seq):
        return False
    return not any(holds(a, failed) for a in (*node.args, *(node.kwargs or {}).values()))
