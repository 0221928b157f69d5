"""Governance over one run: the policy as the kernel was told it, and the windows that all runs share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from deepstrike.wire.input import Resume, SetPolicy, Start

if TYPE_CHECKING:
    from deepstrike.governance.policy import Governance
    from deepstrike.kernel import Judge
    from deepstrike.wire.input import Input
    from deepstrike.wire.policy import Policy


class Oversight:
    """Sees that the kernel judges by the policy as it stands: a change is told before the next judgement."""

    __slots__ = ("_governance", "_told", "judge")

    def __init__(self, governance: Governance | None) -> None:
        self._governance = governance
        self._told: Policy | None = None
        self.judge: Judge | None = None if governance is None else governance.judge

    def first(self, item: Start | Resume) -> Start | Resume:
        """The goal, or its resumption, by the policy of this moment: it may be older than it looks."""
        if self._governance is None:
            return item
        self._told = policy = self._governance.policy()
        return msgspec.structs.replace(item, config=msgspec.structs.replace(item.config, policy=policy))

    def change(self, item: Input) -> SetPolicy | None:
        """What the kernel has to hear before it takes `item`; None while nothing has changed."""
        if self._governance is None or isinstance(item, Start | Resume):
            return None
        policy = self._governance.policy()
        if policy is self._told:
            return None
        self._told = policy
        return SetPolicy(policy)
