"""The YAML between two `---` lines at a file's beginning, with the line of everything in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import yaml

MAX_BYTES: Final = 64 * 1024
MAX_DEPTH: Final = 16
MAX_NODES: Final = 2_000

# libyaml where PyYAML was built with it: the same language, several times faster.
_Loader: type[yaml.SafeLoader | yaml.CSafeLoader] = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader

_FENCE = re.compile(r"---[ \t]*")
# `key: text` where YAML would read the text as something more; quotes, blocks and flow collections are left alone.
_PLAIN = re.compile(r"([A-Za-z][\w-]*):[ \t]+([^\s'\"|>\[{&*!%@`#].*)")

# To YAML these end a line, to an editor they do not.
_BREAKS: Final = {0x85: " ", 0x2028: " ", 0x2029: " "}

Value = str | list["Value"] | dict[str, "Value"] | None
"""What front matter holds: texts as they are written (so `on` stays `on`), lists, mappings, nothing."""


class Broken(Exception):
    """No front matter that can be read; `line` counts from 1."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


@dataclass(frozen=True, slots=True)
class Document:
    """A file in its two parts. `lines` has the line of each field, `repaired` the line of what was no YAML."""

    fields: dict[str, Value]
    lines: dict[str, int]
    body: str
    repaired: int | None = None


def read(data: bytes) -> Document:
    """The parts of a file in UTF-8, with or without byte-order mark, any line ends. Raises `Broken`."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Broken(data.count(b"\n", 0, error.start) + 1, "is not UTF-8 text") from None
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if not _FENCE.fullmatch(lines[0]):
        raise Broken(1, "begins with no front matter: its first line must be ---")
    end = next((at for at, line in enumerate(lines[1:], 1) if _FENCE.fullmatch(line)), None)
    if end is None:
        raise Broken(1, "has front matter that is never closed by a line ---")
    head, body = lines[1:end], "\n".join(lines[end + 1 :]).strip("\n")
    if len("\n".join(head).encode()) > MAX_BYTES:
        raise Broken(1, f"has more than {MAX_BYTES} bytes of front matter")
    try:
        return Document(*_mapping(head), body)
    except Broken as error:
        mended = [_quoted(line) for line in head]
        if mended == head:
            raise
        try:
            return Document(*_mapping(mended), body, repaired=error.line)
        except Broken:
            raise error from None


def _quoted(line: str) -> str:
    """A plain one-line text with `: ` in it, which people write and YAML refuses, put in quotes."""
    found = _PLAIN.fullmatch(line)
    if found is None or not re.search(r":\s", found[2] + " "):
        return line
    return f"{found[1]}: '{found[2].rstrip().replace(chr(39), chr(39) * 2)}'"


def _mapping(lines: list[str]) -> tuple[dict[str, Value], dict[str, int]]:
    text = "\n".join(lines).translate(_BREAKS)
    try:
        _check_bounds(text)
        root = yaml.compose(text, _Loader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line if error.problem_mark is not None else 0
        raise Broken(line + 2, f"is not YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise Broken(1, f"is not YAML: {error}".replace("\n", " ")) from None
    if root is None:
        return {}, {}
    if not isinstance(root, yaml.MappingNode):
        raise Broken(_line(root), "has front matter that is no mapping of names to values")
    return _fields(root), {str(key.value): _line(key) for key, _ in root.value}


def _check_bounds(text: str) -> None:
    """Looked at as a stream of events, which takes no memory, before anything is built from it."""
    depth = nodes = 0
    for event in yaml.parse(text, _Loader):
        line = event.start_mark.line + 2 if event.start_mark is not None else 1
        nodes += isinstance(event, yaml.NodeEvent)
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if isinstance(event, yaml.AliasEvent):
            raise Broken(line, "uses a YAML alias, which front matter may not")
        if depth > MAX_DEPTH or nodes > MAX_NODES:
            raise Broken(line, f"nests deeper than {MAX_DEPTH} or has more than {MAX_NODES} values")


def _fields(node: yaml.MappingNode) -> dict[str, Value]:
    fields: dict[str, Value] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise Broken(_line(key), "has a name that is no text")
        if key.value in fields:
            raise Broken(_line(key), f"has {key.value!r} twice")
        fields[key.value] = _value(value)
    return fields


def _value(node: yaml.Node) -> Value:
    if isinstance(node, yaml.MappingNode):
        return _fields(node)
    if isinstance(node, yaml.SequenceNode):
        return [_value(item) for item in node.value]
    text = str(node.value)
    return None if node.tag == "tag:yaml.org,2002:null" else text


def _line(node: yaml.Node) -> int:
    """The first line of the file is the fence, and marks count from 0."""
    return node.start_mark.line + 2 if node.start_mark is not None else 1
