"""Rules of a policy that decide nothing about some tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepstrike.kernel import glob

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from deepstrike.wire.policy import Permission, Policy

_STRENGTH = {"allow": 0, "ask": 1, "deny": 2}


def dead(policy: Policy, tools: Collection[str]) -> Iterator[str]:
    """The rules that fit none of the tools, as they are told."""
    for pattern, told in _patterns(policy):
        if not any(glob(pattern, tool) for tool in tools):
            yield told
    for manager in policy.permissions:
        for entry in manager.entries:
            if not any(_fits(entry, tool) for tool in tools):
                yield f"{'revoke' if entry.verdict == 'deny' else 'grant'} {entry.tool}.{entry.action}"


def overruled(policy: Policy, tools: Collection[str]) -> Iterator[str]:
    """The rules and blocks that fit some of the tools, to each of which another fits that decides in their place.

    A denial by rule comes before a block, a block before what a rule allows or asks about.
    """
    for rule in policy.rules:
        stronger = [other.pattern for other in policy.rules if _STRENGTH[other.action] > _STRENGTH[rule.action]]
        if rule.action != "deny":
            stronger += policy.blocked
        if _never_decides(rule.pattern, stronger, tools):
            yield f"{rule.action} {rule.pattern}"
    denied = [rule.pattern for rule in policy.rules if rule.action == "deny"]
    for pattern in policy.blocked:
        if _never_decides(pattern, denied, tools):
            yield f"block {pattern}"


def _never_decides(pattern: str, stronger: Collection[str], tools: Collection[str]) -> bool:
    fitted = [tool for tool in tools if glob(pattern, tool)]
    return bool(fitted) and all(any(glob(other, tool) for other in stronger) for tool in fitted)


def _patterns(policy: Policy) -> Iterator[tuple[str, str]]:
    yield from ((rule.pattern, f"{rule.action} {rule.pattern}") for rule in policy.rules)
    yield from ((pattern, f"block {pattern}") for pattern in policy.blocked)
    yield from ((rate.pattern, f"rate limit {rate.pattern}") for rate in policy.rates)
    yield from ((constraint.pattern, f"constraint {constraint.pattern}") for constraint in policy.constraints)


def _fits(entry: Permission, name: str) -> bool:
    """A tool named `fs.read` is the action `read` of `fs`; a name without a dot is a tool whose action is `call`."""
    tool, dot, action = name.rpartition(".")
    if not dot:
        tool, action = name, "call"
    return glob(entry.tool, tool) and glob(entry.action, action)
