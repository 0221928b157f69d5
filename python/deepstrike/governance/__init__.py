"""What agents may do: policies, permissions, verdicts. The kernel decides; these say by what."""

from __future__ import annotations

from deepstrike.governance.permissions import Permission, PermissionDecision, PermissionManager, PermissionMode
from deepstrike.governance.policy import Governance
from deepstrike.governance.verdict import GovernanceVerdict

__all__ = [
    "Governance",
    "GovernanceVerdict",
    "Permission",
    "PermissionDecision",
    "PermissionManager",
    "PermissionMode",
]
