"""A server's tools as the model sees them: names that are safe, words that are plain, schemas that were checked."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from deepstrike.clock import current_clock
from deepstrike.errors import ConfigError
from deepstrike.execution.mcp.names import wire_names
from deepstrike.execution.mcp.words import plain
from deepstrike.execution.unknown import unknown_tool
from deepstrike.kernel import META_TOOLS, validate
from deepstrike.tools.arguments import SchemaArguments
from deepstrike.tools.explicit import property_types, read_schema
from deepstrike.wire.message import Err, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepstrike.clock import Clock
    from deepstrike.tools.definition import Effect
    from deepstrike.tools.documents import Json
    from deepstrike.wire.message import Validated

LONGEST_DESCRIPTION: Final = 4096
LONGEST_NOTE: Final = 1024
"""Of one description inside a schema."""
LARGEST_SCHEMA: Final = 64 * 1024
CHECK_MS: Final = 10_000
"""For all schemas of a server; tools that are left then are not offered. A usual one takes a fraction of a ms."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A tool as its server lists it. Nothing of it is trusted. `flaw` says why it cannot be read at all."""

    name: str
    description: str
    schema: Mapping[str, Json]
    read_only: bool = False
    idempotent: bool = False
    flaw: str = ""
    output: Mapping[str, Json] | None = None
    """The schema of its structured results."""
    size: int = 0
    """Characters."""
    slow: bool = False
    """Whether its schemas may take long to be checked."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which of a server's tools are offered, and how: `allow` holds names and globs of the server's own names."""

    prefix: str = ""
    allow: tuple[str, ...] | None = None
    trust_hints: bool = False

    def takes(self, name: str) -> bool:
        """Whether the tool is offered at all."""
        return self.allow is None or any(fnmatchcase(name, pattern) for pattern in self.allow)

    def effect(self, tool: Listed) -> Effect:
        """What a crash means for its calls; the server's word counts only where it is trusted."""
        if not self.trust_hints:
            return "once"
        return "read" if tool.read_only else "idempotent" if tool.idempotent else "once"


@dataclass(frozen=True, slots=True)
class Offered:
    """A tool that is offered; the server is called by `original`."""

    original: str
    spec: ToolSpec
    arguments: SchemaArguments
    output: str = ""
    """The schema that its structured results are checked by; none where it is too large, or no schema."""


class Catalogue:
    """The tools of one listing. `omitted` says of each tool that is not offered, though it was allowed, why.

    `renamed` are those whose own name, with the prefix, the runtime has for a tool of its own: name → name on the wire.
    """

    __slots__ = ("_offered", "omitted", "renamed", "specs")

    def __init__(self, listed: Sequence[Listed], choice: Choice, clock: Clock | None = None) -> None:
        """Where a tool is `slow` this may take `CHECK_MS`: not for an event loop."""
        clock = clock or current_clock()
        wanted = [tool for tool in listed if choice.takes(tool.name)]
        prefix = f"{choice.prefix}_" if choice.prefix else ""
        names = wire_names((tool.name for tool in wanted), prefix, META_TOOLS)
        self._offered: dict[str, Offered] = {}
        self.omitted: dict[str, str] = {}
        self.renamed = {tool.name: names[tool.name] for tool in wanted if prefix + tool.name in META_TOOLS}
        end = clock.now_ms() + CHECK_MS
        for tool in wanted:
            if clock.now_ms() > end:
                self.omitted[tool.name] = f"checking the schemas of this server's tools took over {CHECK_MS} ms"
            else:
                self._add(tool, names.get(tool.name), choice)
        self.specs = tuple(self._offered[name].spec for name in sorted(self._offered))

    def get(self, name: str) -> Offered | None:
        """The tool that the model calls `name`."""
        return self._offered.get(name)

    def check(self, name: str, args_text: str) -> Validated:
        """Validate the arguments of a call; never raises."""
        offered = self._offered.get(name)
        if offered is None:
            return Err("unknown_tool", unknown_tool(name, self._offered))
        return offered.arguments.check(args_text)

    def _add(self, tool: Listed, name: str | None, choice: Choice) -> None:
        if name is None or name in self._offered:
            self.omitted[tool.name] = "another tool has this name"
            return
        if tool.flaw:
            self.omitted[tool.name] = plain(tool.flaw, LONGEST_NOTE)
            return
        try:
            arguments = _arguments(name, tool.schema)
        except ConfigError as error:
            self.omitted[tool.name] = plain(error.message, LONGEST_NOTE)
            return
        spec = ToolSpec(name, plain(tool.description, LONGEST_DESCRIPTION), arguments.schema, choice.effect(tool))
        self._offered[name] = Offered(tool.name, spec, arguments, _output(tool.output))


def _arguments(name: str, schema: Mapping[str, Json]) -> SchemaArguments:
    """Raises `ConfigError` for a schema that cannot be used."""
    try:
        shown = {key: _shown(value, key) for key, value in schema.items()}
    except RecursionError:
        raise ConfigError(f"tool {name!r}: its schema is nested too deeply") from None
    text = read_schema(name, shown)
    if len(text) > LARGEST_SCHEMA:
        raise ConfigError(f"tool {name!r}: its schema is longer than {LARGEST_SCHEMA} characters")
    try:
        validate(text, "{}")
    except ValueError as error:
        raise ConfigError(f"tool {name!r}: its inputSchema is no valid JSON schema: {error}") from error
    return SchemaArguments(text, validate, property_types(text))


def _output(schema: Mapping[str, Json] | None) -> str:
    try:
        text = "" if schema is None else json.dumps(schema)
        if text and len(text) <= LARGEST_SCHEMA:
            validate(text, "{}")
            return text
    except (ValueError, RecursionError):
        pass
    return ""


def _shown(value: Json, key: str) -> Json:
    """The schema with its descriptions made plain; what arguments are checked by stays as it is."""
    if isinstance(value, str):
        return plain(value, LONGEST_NOTE) if key in ("description", "title", "$comment") else value
    if isinstance(value, dict):
        return {name: _shown(each, name) for name, each in value.items()}
    if isinstance(value, list):
        return [_shown(each, "") for each in value]
    return value
