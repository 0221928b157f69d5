"""Grants of actions on tools."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from enum import Enum
from typing import Final

import msgspec

from deepstrike.errors import ConfigError
from deepstrike.kernel import permit
from deepstrike.text import well_formed
from deepstrike.wire import policy as wire

_LONGEST_GLOB: Final = 512

_encode = msgspec.json.Encoder().encode


class PermissionMode(Enum):
    """What holds where no permission fits: DEFAULT denies, AUTO allows. PLAN denies everything, whatever is granted."""

    DEFAULT = "default"
    PLAN = "plan"
    AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Permission:
    """A grant (`granted`) or a revocation of the actions and tools that two globs fit."""

    tool: str
    action: str
    granted: bool
    requires_approval: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class PermissionDecision:
    """Whether an action is allowed, and why.

    `requires_approval`: allowed once a person has said so. `matched_permission` is the grant or revocation that
    decided, None where the mode did.
    """

    allowed: bool
    reason: str
    requires_approval: bool = False
    matched_permission: Permission | None = None


class PermissionManager:
    """Grants and revocations of actions on tools.

    A revocation that fits an action denies it, until a later grant that is as narrow as it (in the tool and in the
    action) lifts it: `revoke("*", "*")` stops everything. Tools and actions are globs, like those of `Governance`.
    Among grants the narrowest decides, by the tool first: a name before a glob, a glob with more letters before one
    with fewer, among equals the last one given. `Governance.use(manager)` makes it part of the permission stage: a tool
    named `fs.read` is then the action `read` of the tool `fs`, a name without a dot is a tool whose action is `call`.
    Safe to use from several threads; changes bite at the next call.
    """

    def __init__(self, mode: PermissionMode = PermissionMode.DEFAULT) -> None:
        self._lock = threading.Lock()
        self._entries: tuple[Permission, ...] = ()
        self._mode = _mode(mode)
        self._version = 0

    @property
    def mode(self) -> PermissionMode:
        """What holds where no permission fits; may be set."""
        return self._mode

    @mode.setter
    def mode(self, mode: PermissionMode) -> None:
        mode = _mode(mode)
        with self._lock:
            self._mode = mode
            self._version += 1

    @property
    def version(self) -> int:
        """Changes with every change."""
        return self._version

    def grant(self, tool: str, action: str, *, requires_approval: bool = False, note: str = "") -> PermissionManager:
        """Allow the actions that both globs fit, with `requires_approval` once a person has said so.

        Returns the manager. Raises `ConfigError` where one is no text of 1 to 512 characters.
        """
        return self._add(Permission(glob("tool", tool), glob("action", action), True, bool(requires_approval), note))

    def revoke(self, tool: str, action: str, *, note: str = "") -> PermissionManager:
        """Deny the actions that both globs fit. Returns the manager. Raises `ConfigError` as `grant` does."""
        return self._add(Permission(glob("tool", tool), glob("action", action), False, note=note))

    def permissions(self) -> tuple[Permission, ...]:
        """All grants and revocations in force, in the order in which they were given."""
        return self._entries

    def evaluate(self, tool: str, action: str) -> PermissionDecision:
        """What holds for an action. Nothing is counted or recorded."""
        entries = self._entries
        verdict, number = permit(_encode(_wired(self._mode, entries)), _word("tool", tool), _word("action", action))
        matched = None if number is None else entries[number]
        return PermissionDecision(
            verdict != "deny", _reason(self._mode, matched, f"{tool}.{action}"), verdict == "ask", matched
        )

    def wired(self) -> wire.Permissions:
        """As the kernel takes them."""
        return _wired(self._mode, self._entries)

    def _add(self, permission: Permission) -> PermissionManager:
        if not isinstance(permission.note, str):
            raise ConfigError(f"note must be a text, not {type(permission.note).__name__}")
        with self._lock:
            others = (one for one in self._entries if (one.tool, one.action) != (permission.tool, permission.action))
            self._entries = (*others, permission)
            self._version += 1
        return self


def _wired(mode: PermissionMode, entries: tuple[Permission, ...]) -> wire.Permissions:
    return wire.Permissions(mode.value, tuple(map(_entry, entries)))


def _entry(permission: Permission) -> wire.Permission:
    verdict = "deny" if not permission.granted else "ask" if permission.requires_approval else "allow"
    return wire.Permission(permission.tool, permission.action, verdict, well_formed(permission.note))


def _reason(mode: PermissionMode, matched: Permission | None, action: str) -> str:
    if mode is PermissionMode.PLAN:
        return "the mode PLAN denies everything"
    if matched is None:
        said = "allows what is not revoked" if mode is PermissionMode.AUTO else "denies what is not granted"
        return f"{action}: the mode {mode.name} {said}"
    said = "granted" if matched.granted else "revoked"
    return matched.note or f"{matched.tool}.{matched.action} was {said}"


def _mode(mode: object) -> PermissionMode:
    if not isinstance(mode, PermissionMode):
        words = ", ".join(f"PermissionMode.{known.name}" for known in PermissionMode)
        raise ConfigError(f"the mode must be one of {words}, not {mode!r}")
    return mode


def _word(name: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{name} must be a name, not {value!r}")
    return well_formed(value)


def glob(name: str, value: object) -> str:
    """`value` as a glob. Raises `ConfigError`, which calls it `name`, for what is none."""
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_GLOB:
        raise ConfigError(
            f"{name} must be a text of 1 to {_LONGEST_GLOB} characters, such as 'fs.*', not {value!r:.600}"
        )
    return well_formed(value)
