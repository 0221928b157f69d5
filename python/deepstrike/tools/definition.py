"""A tool: a function with what the model and the runtime need to know of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Generic, Literal, ParamSpec, TypeVar

from deepstrike.errors import ConfigError
from deepstrike.tools.arguments import Arguments, SchemaArguments
from deepstrike.tools.docstrings import Described, describe
from deepstrike.tools.explicit import property_types
from deepstrike.tools.signature import Signature, read_signature, resolve, underlying
from deepstrike.wire.message import ToolSpec

if TYPE_CHECKING:
    from deepstrike.tools.context import ToolContext
    from deepstrike.wire.message import Validated

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)

Effect = Literal["once", "idempotent", "read"]
Validate = Callable[[str, str], list[str]]


@dataclass(frozen=True, repr=False)
class Tool(Generic[P, R_co]):
    """Made by `tool`; frozen, and still called like the function.

    `effect` says what a crash means: `read` and `idempotent` calls are run again, a `once` call never silently.
    `agent`: a call puts a sub-agent to work. `timeout_ms` bounds one call, or each try of one that is tried again: at
    most `retries` times after a failure that may pass. `parameters` is explicit JSON schema text, None where the
    signature decides; then the schema is built when `spec` is first asked for.
    """

    function: Callable[P, R_co]
    name: str
    description: str
    effect: Effect = "once"
    timeout_ms: int | None = None
    parameters: str | None = None
    agent: bool = False
    retries: int = 0
    _names: Mapping[str, object] | None = field(default=None, compare=False)
    _validate: Validate | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        target = underlying(self.function)
        for attribute in ("__module__", "__qualname__", "__doc__"):
            self.__dict__[attribute] = getattr(target, attribute, None)
        self.__dict__["__name__"] = self.name
        self.__dict__["__wrapped__"] = self.function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function itself: no validation, no timeout."""
        return self.function(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> Tool[..., R_co]:
        """A tool made of a method is, on an object, the tool of the bound method."""
        first = next(iter(self._signature.parameters), None)
        if instance is None or first is None or first.name != "self":
            return self
        return replace(self, function=self.function.__get__(instance, owner))

    def __repr__(self) -> str:
        return f"<Tool {self.name}{inspect.signature(self.function)}>"

    @cached_property
    def spec(self) -> ToolSpec:
        """The tool as the model sees it.

        Raises `ConfigError` if no schema can be made of the signature, or the given one is no valid schema.
        """
        return ToolSpec(
            name=self.name,
            description=self.description,
            parameters=self._arguments.schema,
            effect=self.effect,
            agent=self.agent,
        )

    def check(self, args_text: str) -> Validated:
        """Validate and coerce the model's argument text. Never raises once `spec` has been built.

        `Ok(None)` if the text may stand as it is. The validated text validates to itself.
        """
        return self._arguments.check(args_text)

    def bind(self, args_text: str, context: ToolContext) -> tuple[list[object], dict[str, object]]:
        """Validated text → the positional and named arguments of the call. Raises `InvalidArguments`."""
        return self._signature.arrange(self._arguments.values(args_text), context)

    @cached_property
    def on_loop(self) -> bool:
        """True if the function is called on the event loop: a coroutine function, an async or a sync generator.

        (Calling a generator function runs none of it; its items are then made in a thread.)
        """
        called = _called(self.function)
        return (
            inspect.iscoroutinefunction(called)
            or inspect.isasyncgenfunction(called)
            or inspect.isgeneratorfunction(called)
        )

    @cached_property
    def _signature(self) -> Signature:
        return read_signature(self.name, self.function)

    @cached_property
    def _arguments(self) -> Arguments:
        if self.parameters is not None:
            return self._schema_arguments(self.parameters)
        from deepstrike.tools.coercion import SignatureArguments
        from deepstrike.tools.schema import compile_schema

        parameters = resolve(self.name, self.function, self._signature, self._names or {})
        return SignatureArguments(compile_schema(self.name, parameters, described(self.function).parameters))

    def _schema_arguments(self, schema: str) -> Arguments:
        validate = self._validate or _kernel_validate()
        try:
            complaints = validate(schema, "{}")
        except ValueError as error:
            raise ConfigError(f"tool {self.name!r}: parameters= is no valid JSON schema: {error}") from None
        except Exception as error:
            raise ConfigError(f"tool {self.name!r}: validate= failed: {type(error).__name__}: {error}") from error
        if not isinstance(complaints, list | tuple) or not all(isinstance(each, str) for each in complaints):
            raise ConfigError(f"tool {self.name!r}: validate= must return a list of complaints, not {complaints!r}")
        return SchemaArguments(schema, validate, property_types(schema))


def _kernel_validate() -> Validate:
    from deepstrike.kernel import validate

    return validate


def _called(function: Callable[..., object]) -> Callable[..., object]:
    """What runs first when `function` is called; a wrapper is itself, whatever it wraps."""
    if isinstance(function, partial):
        return _called(function.func)
    return function if inspect.isroutine(function) else type(function).__call__


def described(function: Callable[..., object]) -> Described:
    """What the docstring of `function` says of it and of its parameters."""
    target = underlying(function)
    code = getattr(target, "__code__", None)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code else ()
    return describe(getattr(target, "__doc__", None), names)
