"""The policy of runs: what is allowed, how often, with which arguments."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec

from deepstrike.clock import current_clock
from deepstrike.errors import ConfigError
from deepstrike.governance.permissions import PermissionManager, glob
from deepstrike.governance.schemas import require_known_words
from deepstrike.governance.verdict import GovernanceVerdict, read_verdict
from deepstrike.kernel import Judge, validate
from deepstrike.text import well_formed
from deepstrike.wire.policy import Constraint, Policy, Rate, Rule

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

ACTIONS = ("allow", "deny", "ask")
_MOST = 2**53
_encode = msgspec.json.Encoder().encode


class Governance:
    """Rules in front of every tool call, decided by the kernel.

    Stages in this order: Permission → Veto → RateLimit → Constraint → Audit, on the validated arguments; a stage that
    fails denies. `default` holds for a tool that no rule fits. Globs (`*`, `?`, `[…]`, `[!…]`) fit the whole name and
    are case-sensitive. One object may govern any number of runners, runs and sub-agents: its rate limits count over
    all of them in this process. It may be changed at any time, from any thread; a change bites at the next call. All
    methods that change it return it. Wrong values raise `ConfigError`.
    """

    def __init__(self, default: str = "allow") -> None:
        self._lock = threading.Lock()
        self._own = Policy(default=_action("default", default), audit=True)
        self._managers: tuple[PermissionManager, ...] = ()
        self._versions: tuple[int, ...] = ()
        self._policy = self._own
        self._judge = Judge(_encode(self._own))

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Governance:
        """The policy in a YAML file. Raises `ConfigError` that names file and line."""
        from deepstrike.governance.file import read_policy

        return read_policy(path)

    def add_permission_rule(self, pattern: str, action: str, *, reason: str = "") -> Governance:
        """Allow, deny or ask for the tools that the glob fits. Deny beats ask beats allow, in any order.

        `reason` is what the model and the audit are told.
        """
        rule = Rule(glob("a glob", pattern), _action("action", action), _text("reason", reason))
        return self._change(lambda own: msgspec.structs.replace(own, rules=(*own.rules, rule)))

    def block_tool(self, pattern: str) -> Governance:
        """The tools that the glob fits never run, whatever allows them."""
        return self._change(lambda own: msgspec.structs.replace(own, blocked=(*own.blocked, glob("a glob", pattern))))

    def set_rate_limit(self, pattern: str, max_calls: int, window_ms: int) -> Governance:
        """At most `max_calls` calls of all tools that the glob fits, together, in any `window_ms` milliseconds.

        The window slides and is exact; it counts from now on, and refused calls do not count. A glob may have limits of
        several windows, all of which hold; a second limit of the same glob and window replaces the first. One of
        another window begins with the calls that the glob's limits have counted so far.
        """
        rate = Rate(glob("a glob", pattern), _count("max_calls", max_calls, 0), _count("window_ms", window_ms, 1))

        def change(own: Policy) -> Policy:
            others = (one for one in own.rates if (one.pattern, one.window_ms) != (rate.pattern, rate.window_ms))
            return msgspec.structs.replace(own, rates=(*others, rate))

        return self._change(change)

    def require_param(self, tool: str, name: str) -> Governance:
        """Calls of the tools that the glob `tool` fits need the argument `name`."""
        return self.add_constraint(tool, {"required": [_parameter(name)]})

    def allow_param_values(self, tool: str, name: str, values: Iterable[object]) -> Governance:
        """The argument `name`, where it is given, is one of `values`."""
        if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
            raise ConfigError(f"values must be a list of the values allowed for {name!r}")
        return self.add_constraint(tool, {"properties": {_parameter(name): {"enum": list(values)}}})

    def limit_param_range(
        self,
        tool: str,
        name: str,
        min: float | None = None,  # noqa: A002 (the documented name)
        max: float | None = None,  # noqa: A002
    ) -> Governance:
        """The argument `name`, where it is given, is a number from `min` to `max`, both included."""
        bounds: dict[str, object] = {"type": "number"}
        for word, bound in (("minimum", min), ("maximum", max)):
            if bound is not None:
                bounds[word] = _number(word[:3], bound)
        if len(bounds) == 1 or (min is not None and max is not None and min > max):
            raise ConfigError(f"limit_param_range of {name!r} needs min, max, or both with min at most max")
        return self.add_constraint(tool, {"properties": {_parameter(name): bounds}})

    def add_constraint(self, tool: str, json_schema: Mapping[str, object] | str) -> Governance:
        """The validated arguments of the tools that the glob `tool` fits are valid by a JSON schema (dict or text)."""
        constraint = Constraint(glob("a glob", tool), _schema(json_schema))
        return self._change(lambda own: msgspec.structs.replace(own, constraints=(*own.constraints, constraint)))

    def use(self, manager: PermissionManager) -> Governance:
        """Let a `PermissionManager` take part in the permission stage: what it denies is denied.

        A grant counts as an `allow` rule; that the mode AUTO lets pass what is not revoked does not, so the default of
        this object still holds.
        """
        if not isinstance(manager, PermissionManager):
            raise ConfigError(f"use takes a PermissionManager, not {type(manager).__name__}")
        with self._lock:
            self._managers = (*self._managers, manager)
        return self

    def evaluate(
        self,
        tool: str,
        arguments: Mapping[str, object] | str | None = None,
        now_ms: int | None = None,
        *,
        consume: bool = False,
    ) -> GovernanceVerdict:
        """What the policy says of a call, and which rule of which stage says so.

        `arguments` are the validated ones, a dict or JSON text. `now_ms` is the time in milliseconds since the epoch,
        now unless given. `consume` counts an allowed call in the rate limits, as a run does.
        """
        if not isinstance(tool, str):
            raise ConfigError(f"tool must be a tool's name, not {type(tool).__name__}")
        text = _whole(arguments) if isinstance(arguments, str) else _json("arguments", arguments or {})
        now = current_clock().now_ms() if now_ms is None else _count("now_ms", now_ms, 0)
        self.policy()
        return read_verdict(self._judge.evaluate(well_formed(tool), well_formed(text), now, consume=consume))

    def __repr__(self) -> str:
        return f"<Governance: {summary(self.policy())}>"

    def policy(self) -> Policy:
        """The policy as it stands, as the kernel takes it: the same object until something changes."""
        managers = self._managers
        if not managers:
            return self._policy
        versions = tuple([manager.version for manager in managers])
        if versions == self._versions:
            return self._policy
        return self._change(lambda own: own)._policy

    @property
    def judge(self) -> Judge:
        """The kernel's half: the rate windows that all runs share."""
        return self._judge

    def _change(self, change: Callable[[Policy], Policy]) -> Governance:
        with self._lock:
            self._own = change(self._own)
            versions = tuple([manager.version for manager in self._managers])
            permissions = tuple(manager.wired() for manager in self._managers)
            policy = msgspec.structs.replace(self._own, permissions=permissions)
            self._judge.set(_encode(policy))
            self._policy, self._versions = policy, versions
        return self


def summary(policy: Policy) -> str:
    """`default deny, 2 rules, 1 constraint`"""
    counts = (
        (len(policy.rules), "rule"),
        (len(policy.blocked), "block"),
        (len(policy.rates), "rate limit"),
        (len(policy.constraints), "constraint"),
        (sum(len(manager.entries) for manager in policy.permissions), "permission"),
    )
    held = [f"{number} {word}{'' if number == 1 else 's'}" for number, word in counts if number]
    return ", ".join([f"default {policy.default}", *held])


def _action(name: str, action: object) -> str:
    if not isinstance(action, str) or action not in ACTIONS:
        raise ConfigError(f"{name} must be 'allow', 'deny' or 'ask', not {action!r}")
    return action


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{name} must be a text, not {type(value).__name__}")
    return well_formed(value)


def _parameter(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise ConfigError(f"the name of a parameter must be a text, not {name!r}")
    return well_formed(name)


def _count(name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < _MOST:
        raise ConfigError(f"{name} must be a whole number of at least {least}, not {value!r}")
    return value


def _number(name: str, value: object) -> float:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or (isinstance(value, float) and not math.isfinite(value))
    ):
        raise ConfigError(f"{name} must be a finite number, not {value!r}")
    return value


def _schema(schema: object) -> str:
    if not isinstance(schema, str | Mapping):
        raise ConfigError(f"a constraint is a JSON schema, as a dict or as text, not {type(schema).__name__}")
    text = schema if isinstance(schema, str) else _json("the schema", schema)
    try:
        validate(text, "{}")
    except ValueError as error:
        raise ConfigError(f"the constraint cannot be used: {error}") from None
    require_known_words(msgspec.json.decode(text))
    return text


def _whole(text: str) -> str:
    """The text, nothing where it is no JSON or nests too deep to be read: the kernel, to which only what was validated
    comes, looks no further than to see an object begin.
    """
    try:
        msgspec.json.decode(well_formed(text))
    except (msgspec.DecodeError, RecursionError):
        return ""
    return text


def _json(what: str, value: object) -> str:
    try:
        text = _encode(value)
        if b"null" in text:  # which is also written where there is no number
            json.dumps(msgspec.to_builtins(value), allow_nan=False)
        return text.decode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"{what} cannot be written as JSON: {error}") from None
