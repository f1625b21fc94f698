"""Policies: which ready task a worker gets next, one policy a file."""

from __future__ import annotations

from legato_rt.errors import SettingError
from legato_rt.policy.base import Policy
from legato_rt.policy.eft import Eft
from legato_rt.policy.energy import Energy
from legato_rt.policy.fifo import Fifo
from legato_rt.policy.heft import Heft
from legato_rt.policy.portfolio import Portfolio
from legato_rt.policy.powercap import PowerCap
from legato_rt.policy.steal import Steal

_SHIPPED: tuple[type[Policy], ...] = (Fifo, Steal, Eft, Heft, Portfolio, Energy, PowerCap)
POLICIES = {policy.name: policy for policy in _SHIPPED}
"""Every policy that ships, by name."""


def make_policy(policy: str | Policy | type[Policy]) -> Policy:
    """A fresh policy from its name, class or instance; an unknown name raises `SettingError`."""
    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, type) and issubclass(policy, Policy):
        return policy()
    if policy not in POLICIES:
        raise SettingError(f"policy {policy!r} is none of {', '.join(sorted(POLICIES))}")
    return POLICIES[policy]()
