"""Policies in YAML files, read with the line of everything that is wrong."""

from __future__ import annotations

import difflib
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import yaml

from deepstrike.errors import ConfigError
from deepstrike.governance.permissions import PermissionManager, PermissionMode
from deepstrike.governance.policy import ACTIONS, Governance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from os import PathLike

_LARGEST = 1 << 20
_NODES = 50_000
_TOP = ("default", "rules", "block", "rate_limits", "constraints", "permissions")
_TEXT = "tag:yaml.org,2002:str"


def read_policy(path: str | PathLike[str]) -> Governance:
    """The `Governance` that a file describes. Raises `ConfigError` with file and line."""
    file = Path(path)
    try:
        with open(file, "rb", opener=_at_once) as opened:
            data = opened.read(_LARGEST + 1)  # a device may have no end
    except OSError as error:
        raise ConfigError(f"the policy {str(file)!r} cannot be read: {error.strerror or error}") from None
    if len(data) > _LARGEST:
        raise ConfigError(f"the policy {str(file)!r} is longer than {_LARGEST} bytes")
    try:
        root = yaml.compose(data.decode("utf-8-sig"), yaml.SafeLoader)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}:{_line(data, error.start)}: not UTF-8: byte {data[error.start]:#04x}") from None
    except yaml.reader.ReaderError as error:
        place = len(data.decode("utf-8-sig")[: error.position].encode())
        raise ConfigError(f"{file}:{_line(data, place)}: not YAML: character {error.character:#04x}") from None
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        raise ConfigError(f"{file}{line}: not YAML: {getattr(error, 'problem', None) or error}") from None
    if root is None:
        raise ConfigError(f"{file}: the policy is empty; write at least `default: allow`, `deny` or `ask`")
    return _Reader(file).read(root)


def _at_once(path: str, flags: int) -> int:
    """Opens a pipe that nobody writes to as an empty file, where opening waits for a writer else, for ever."""
    at_once: int = getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags | at_once)
    if at_once:
        os.set_blocking(descriptor, True)  # a writer that is there is waited for
    return descriptor


def _line(data: bytes, place: int) -> int:
    return data.count(b"\n", 0, place) + 1


class _Reader:
    """Walks the nodes, which know their lines."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seen = 0

    def read(self, root: yaml.Node) -> Governance:
        fields = self._fields(root, _TOP)
        governance = Governance()
        if "default" in fields:
            governance = Governance(self._word(fields["default"], ACTIONS))
        for name, add in (
            ("rules", self._rule),
            ("rate_limits", self._rate),
            ("constraints", self._constraint),
        ):
            for item in self._items(fields.get(name)):
                self._at(item, partial(add, governance, item))
        for item in self._items(fields.get("block")):
            self._at(item, partial(governance.block_tool, self._text(item)))
        if "permissions" in fields:
            governance.use(self._permissions(fields["permissions"]))
        return governance

    def _rule(self, governance: Governance, node: yaml.Node) -> None:
        fields = self._fields(node, (*ACTIONS, "reason"))
        actions = [name for name in ACTIONS if name in fields]
        if len(actions) != 1:
            self._fail(
                node, "a rule is one of `allow: GLOB`, `deny: GLOB`, `ask: GLOB`, with `reason: TEXT` if you like"
            )
        reason = self._text(fields["reason"]) if "reason" in fields else ""
        for item in self._some(fields[actions[0]]):
            add = partial(governance.add_permission_rule, self._text(item), actions[0], reason=reason)
            self._at(item, add)

    def _rate(self, governance: Governance, node: yaml.Node) -> None:
        fields = self._fields(node, ("tool", "max_calls", "window_ms"), needed=("tool", "max_calls", "window_ms"))
        governance.set_rate_limit(
            self._text(fields["tool"]), self._whole(fields["max_calls"]), self._whole(fields["window_ms"])
        )

    def _constraint(self, governance: Governance, node: yaml.Node) -> None:
        fields = self._fields(node, ("tool", "require", "values", "range", "schema"), needed=("tool",))
        tool = self._text(fields["tool"])
        if len(fields) == 1:
            self._fail(node, "a constraint needs `require`, `values`, `range` or `schema`")
        for item in self._some(fields.get("require")):
            self._at(item, partial(governance.require_param, tool, self._text(item)))
        for name, values in self._named(fields.get("values")).items():
            governance.allow_param_values(tool, name, [self._value(value) for value in self._items(values)])
        for name, bounds in self._named(fields.get("range")).items():
            ends = {end: self._number(bound) for end, bound in self._fields(bounds, ("min", "max")).items()}
            limit = partial(governance.limit_param_range, tool, name, ends.get("min"), ends.get("max"))
            self._at(bounds, limit)
        if (schema := fields.get("schema")) is not None:
            value = self._value(schema)
            if not isinstance(value, dict) or not value:
                self._fail(schema, "schema must be a JSON schema as a mapping that says something")
            self._at(schema, partial(governance.add_constraint, tool, value))

    def _permissions(self, node: yaml.Node) -> PermissionManager:
        fields = self._fields(node, ("mode", "grant", "revoke"))
        words = tuple(mode.value for mode in PermissionMode)
        mode = self._word(fields["mode"], words) if "mode" in fields else PermissionMode.DEFAULT.value
        manager = PermissionManager(PermissionMode(mode))
        for name, add in (("grant", self._grant), ("revoke", self._revoke)):
            for item in self._items(fields.get(name)):
                self._at(item, partial(add, manager, item))
        return manager

    def _grant(self, manager: PermissionManager, node: yaml.Node) -> None:
        fields = self._fields(node, ("tool", "action", "requires_approval", "note"), needed=("tool", "action"))
        approval = self._value(fields["requires_approval"]) if "requires_approval" in fields else False
        if not isinstance(approval, bool):
            self._fail(fields["requires_approval"], "requires_approval must be true or false")
        note = self._text(fields["note"]) if "note" in fields else ""
        manager.grant(self._text(fields["tool"]), self._text(fields["action"]), requires_approval=approval, note=note)

    def _revoke(self, manager: PermissionManager, node: yaml.Node) -> None:
        fields = self._fields(node, ("tool", "action", "note"), needed=("tool", "action"))
        note = self._text(fields["note"]) if "note" in fields else ""
        manager.revoke(self._text(fields["tool"]), self._text(fields["action"]), note=note)

    def _at(self, node: yaml.Node, act: Callable[[], object]) -> None:
        """What a method of the policy objects to, with the line."""
        try:
            act()
        except ConfigError as error:
            if error.message.startswith(f"{self._file}:"):
                raise
            self._fail(node, error.message)

    def _fields(
        self, node: yaml.Node | None, names: tuple[str, ...] | None = None, needed: tuple[str, ...] = ()
    ) -> dict[str, yaml.Node]:
        if node is None:
            return {}
        if not isinstance(node, yaml.MappingNode):
            self._fail(node, "must be a mapping of " + (", ".join(names) if names else "names to values"))
        fields: dict[str, yaml.Node] = {}
        for key, value in node.value:
            self._count(key)
            name = self._text(key)
            if names is not None and name not in names:
                near = difflib.get_close_matches(name, names, n=1)
                meant = f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(names)}"
                self._fail(key, f"unknown word {name!r}{meant}")
            if name in fields:
                self._fail(key, f"{name!r} stands here twice")
            fields[name] = value
        for name in needed:
            if name not in fields:
                self._fail(node, f"{name!r} is missing")
        return fields

    def _named(self, node: yaml.Node | None) -> dict[str, yaml.Node]:
        """The entries of a mapping that must hold something: an empty one would say nothing."""
        fields = self._fields(node)
        if node is not None and not fields:
            self._fail(node, "the mapping is empty: name a parameter, or leave it out")
        return fields

    def _some(self, node: yaml.Node | None) -> Iterator[yaml.Node]:
        """The items of a list that must hold something: an empty one would say nothing."""
        items = list(self._items(node))
        if node is not None and not items:
            self._fail(node, "the list is empty: name something, or leave it out")
        return iter(items)

    def _items(self, node: yaml.Node | None) -> Iterator[yaml.Node]:
        """The items of a list; one value alone is a list of one."""
        if node is None:
            return
        for item in node.value if isinstance(node, yaml.SequenceNode) else (node,):
            self._count(item)
            yield item

    def _text(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            self._fail(node, "must be a text")
        if node.tag != _TEXT:
            self._fail(node, f"must be a text; YAML reads {node.value!r} as something else: put it in quotes")
        return str(node.value)

    def _word(self, node: yaml.Node, words: tuple[str, ...]) -> str:
        word = self._text(node)
        if word not in words:
            near = difflib.get_close_matches(word, words, n=1)
            self._fail(node, f"unknown word {word!r}; " + (f"did you mean {near[0]!r}?" if near else ", ".join(words)))
        return word

    def _whole(self, node: yaml.Node) -> int:
        value = self._value(node)
        if isinstance(value, bool) or not isinstance(value, int):
            self._fail(node, f"must be a whole number, not {value!r}")
        return value

    def _number(self, node: yaml.Node) -> float:
        value = self._value(node)
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._fail(node, f"must be a number, not {value!r}")
        return value

    def _value(self, node: yaml.Node, depth: int = 0) -> object:
        """The node as JSON would hold it."""
        self._count(node)
        if depth > 64:
            self._fail(node, "nests too deep")
        if isinstance(node, yaml.MappingNode):
            return {name: self._value(value, depth + 1) for name, value in self._fields(node).items()}
        if isinstance(node, yaml.SequenceNode):
            return [self._value(item, depth + 1) for item in node.value]
        try:
            value: object = yaml.SafeLoader("").construct_object(node, deep=True)
        except (yaml.YAMLError, ValueError) as error:
            self._fail(node, str(error))
        if value is not None and not isinstance(value, str | int | float | bool):
            self._fail(node, f"{node.value!r} is no JSON value: put it in quotes")
        return value

    def _count(self, node: yaml.Node) -> None:
        """Aliases may repeat a node without end."""
        self._seen += 1
        if self._seen > _NODES:
            self._fail(node, f"the policy has more than {_NODES} entries")

    def _fail(self, node: yaml.Node, what: str) -> NoReturn:
        raise ConfigError(f"{self._file}:{node.start_mark.line + 1}: {what}")
