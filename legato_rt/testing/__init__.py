"""The contracts of policies, executors and device drivers, as suites that anybody can run.

Each suite is a tuple of functions that raise `AssertionError` where the contract is broken, so that
a test can be parametrized by them, and one function that calls all of them::

    from legato_rt.testing import check_policy

    def test_my_policy():
        check_policy(MyPolicy)

No test framework is needed.
"""

from __future__ import annotations

from legato_rt.testing.backends import BACKEND_CHECKS, check_backend
from legato_rt.testing.executors import EXECUTOR_CHECKS, check_executor
from legato_rt.testing.policies import POLICY_CHECKS, check_policy
from legato_rt.testing.stage import Stage

__all__ = [
    "BACKEND_CHECKS",
    "EXECUTOR_CHECKS",
    "POLICY_CHECKS",
    "Stage",
    "check_backend",
    "check_executor",
    "check_policy",
]
