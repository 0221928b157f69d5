"""`tool`: from a function to a `Tool`, in three forms."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, ParamSpec, Protocol, TypeVar, get_args, overload

from deepstrike.errors import ConfigError
from deepstrike.tools.definition import Effect, Tool, Validate, described
from deepstrike.tools.explicit import check_fits, read_schema
from deepstrike.tools.signature import names_in_reach, read_signature, underlying

if TYPE_CHECKING:
    from types import FrameType

P = ParamSpec("P")
R = TypeVar("R")

MAX_NAME: Final = 256
MAX_RETRIES: Final = 10
TIMEOUT_BELOW: Final = 2**53
"""Milliseconds; below it a float, which clocks count in, still tells one from the next."""


class Decorate(Protocol):
    """What `tool(...)` with options returns: it makes the tool of a function."""

    def __call__(self, function: Callable[P, R], /) -> Tool[P, R]:
        """Make the tool. Raises `ConfigError`."""


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    parameters: Mapping[str, object] | str | None = None,
    timeout_ms: int | None = None,
    effect: Effect | None = None,
    retries: int | None = None,
    validate: Validate | None = None,
) -> Decorate: ...


def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    parameters: Mapping[str, object] | str | None = None,
    timeout_ms: int | None = None,
    effect: Effect | None = None,
    retries: int | None = None,
    validate: Validate | None = None,
) -> Tool[P, R] | Decorate:
    """Make a tool of a function: `@tool`, `@tool(timeout_ms=5000)`, or `tool(name=…)(function)`.

    Without options the name is the function's, the description its docstring (less the sections on parameters and
    results) and the schema comes from the signature, with what a Google, NumPy or Sphinx docstring says of each
    parameter. A parameter annotated `ToolContext` is injected. Explicit `parameters` (a JSON schema as a dict or as
    text) replace the signature's: arguments are then passed by name as JSON decodes them.

    Sync functions run in threads of our own, async ones on the loop. What a generator yields is streamed; its strings
    joined are the result, other values stand in it as lines of JSON. `timeout_ms` bounds one call. `effect` is
    `once` (the default), `idempotent` or `read`. `retries`, for the last two only, says how often a call is tried again
    that failed by an exception or its time-out, each try with `timeout_ms` of its own; a `ToolError` only if it is
    `retryable`. `validate(schema, document)` replaces the kernel's judge of explicit schemas. Giving a `Tool` with
    options makes a copy with these changed.

    Raises `ConfigError` at once for bad options, an invalid schema among them; a signature's schema is made when it is
    first needed.
    """
    options = _Options(name, description, parameters, timeout_ms, effect, retries, validate)
    options.check()
    if function is None:
        return _Decorator(options)
    return _make(function, options, sys._getframe(1))


def tool_in(frame: FrameType, function: Callable[P, R]) -> Tool[P, R]:
    """As `tool(function)` called in `frame`, whose classes the function's postponed annotations may name."""
    return _make(function, _Options(), frame)


@dataclass(frozen=True, slots=True)
class _Options:
    name: str | None = None
    description: str | None = None
    parameters: Mapping[str, object] | str | None = None
    timeout_ms: int | None = None
    effect: Effect | None = None
    retries: int | None = None
    validate: Validate | None = None

    def check(self) -> None:
        if self.effect is not None and self.effect not in get_args(Effect):
            raise ConfigError(f"effect={self.effect!r}: use one of {', '.join(map(repr, get_args(Effect)))}")
        check_timeout(self.timeout_ms)
        _check_retries(self.retries)
        for word, given in (("name", self.name), ("description", self.description)):
            if given is not None and not isinstance(given, str):
                raise ConfigError(f"{word}={given!r}: give a string")
        if self.name is not None:
            check_name(self.name)
        if self.parameters is not None and not isinstance(self.parameters, Mapping | str):
            raise ConfigError(f"parameters= must be a JSON schema as a dict or as text, not {self.parameters!r}")
        if self.validate is not None and not callable(self.validate):
            raise ConfigError(f"validate={self.validate!r}: give a function of schema and document, both JSON texts")


def check_timeout(timeout_ms: object) -> None:
    """Raises `ConfigError` for anything but None and whole milliseconds above 0."""
    if timeout_ms is None:
        return
    if isinstance(timeout_ms, int) and abs(timeout_ms) >= TIMEOUT_BELOW:  # may have more digits than Python writes out
        raise ConfigError("timeout_ms is out of range: give 1 to 2**53 - 1 milliseconds, or None for no limit")
    if not isinstance(timeout_ms, int) or isinstance(timeout_ms, bool) or timeout_ms <= 0:
        raise ConfigError(f"timeout_ms={timeout_ms!r}: give whole milliseconds above 0, or None for no limit")


def _check_retries(retries: int | None) -> None:
    if retries is not None and (
        not isinstance(retries, int) or isinstance(retries, bool) or not 0 <= retries <= MAX_RETRIES
    ):
        raise ConfigError(f"retries={retries!r:.40}: give a whole number from 0 to {MAX_RETRIES}")


def check_name(name: str) -> None:
    """Raises `ConfigError` for a name that no host could show. Dots and spaces are fine: wire names are mapped."""
    if not isinstance(name, str) or not name or name != name.strip() or not name.isprintable():
        raise ConfigError(f"tool name {name!r}: give a non-empty, printable name without blanks around it")
    if len(name) > MAX_NAME:
        raise ConfigError(f"tool name {name[:20]!r}…: at most {MAX_NAME} characters, this one has {len(name)}")


@dataclass(frozen=True, slots=True)
class _Decorator:
    options: _Options

    def __call__(self, function: Callable[P, R], /) -> Tool[P, R]:
        return _make(function, self.options, sys._getframe(1))


def _make(function: Callable[P, R], options: _Options, frame: FrameType) -> Tool[P, R]:
    if isinstance(function, Tool):
        return _changed(function, options)
    _check_function(function)
    name = options.name or _own_name(function)
    check_name(name)
    schema = None
    if options.parameters is not None:
        schema = read_schema(name, options.parameters)
    if schema is None or _is_readable(function):
        signature = read_signature(name, function)
        if schema is not None:
            check_fits(name, schema, signature)
    made: Tool[P, R] = Tool(
        function=function,
        name=name,
        description=options.description if options.description is not None else described(function).text,
        effect=options.effect or "once",
        timeout_ms=options.timeout_ms,
        parameters=schema,
        retries=options.retries or 0,
        _names=names_in_reach(function, frame) if schema is None else None,
        _validate=options.validate,
    )
    return _judged(made)


def _changed(made: Tool[P, R], options: _Options) -> Tool[P, R]:
    name = options.name or made.name
    changed: Tool[P, R] = Tool(
        function=made.function,
        name=name,
        description=options.description if options.description is not None else made.description,
        effect=options.effect or made.effect,
        timeout_ms=options.timeout_ms if options.timeout_ms is not None else made.timeout_ms,
        parameters=read_schema(name, options.parameters) if options.parameters is not None else made.parameters,
        agent=made.agent,
        retries=options.retries if options.retries is not None else made.retries,
        _names=made._names,
        _validate=options.validate or made._validate,
    )
    return made if changed == made and options.validate is None else _judged(changed)


def _judged(made: Tool[P, R]) -> Tool[P, R]:
    """An explicit schema is judged here and now; the judge's compiled form is wanted later in any case."""
    if made.retries and made.effect == "once":
        raise ConfigError(
            f'tool {made.name!r}: retries={made.retries} would do twice what effect="once" says is done once; say '
            'effect="read" or effect="idempotent" if that is true of it, or leave retries out'
        )
    if made.parameters is not None:
        _ = made.spec
    return made


def _check_function(function: object) -> None:
    if isinstance(function, str):
        raise ConfigError(f"@tool({function!r}): options go by name, as in @tool(name={function!r})")
    if isinstance(function, classmethod | staticmethod):
        kind = type(function).__name__
        raise ConfigError(f"put @{kind} above @tool, not below, or make the tool of Class.method")
    if inspect.isclass(function):
        raise ConfigError(f"{function.__name__} is a class; a tool is made of a function")
    if not callable(function):
        raise ConfigError(f"a tool is made of a function, not of {function!r}")


def _own_name(function: Callable[..., object]) -> str:
    if not (inspect.isroutine(function) or hasattr(function, "func")):
        return type(function).__name__
    name = getattr(underlying(function), "__name__", "")
    if name in ("", "<lambda>"):
        raise ConfigError('a lambda has no name: give one, as in tool(name="add")(lambda x, y: x + y)')
    return name


def _is_readable(function: Callable[..., object]) -> bool:
    try:
        inspect.signature(function)
    except (ValueError, TypeError):
        return False
    return True
