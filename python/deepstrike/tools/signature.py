"""What a function takes: its parameters with resolved annotations, and how to call it with named values."""

from __future__ import annotations

import functools
import inspect
import re
import typing
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

from deepstrike.errors import ConfigError
from deepstrike.tools.context import ToolContext

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType

NO_DEFAULT: Final = inspect.Parameter.empty
_STARRED = frozenset({inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD})


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter that the model fills. `annotation` is resolved; `default` is `NO_DEFAULT` if there is none."""

    name: str
    annotation: object
    default: object


@dataclass(frozen=True, slots=True)
class Signature:
    """How a tool's function is called.

    `positional` names the leading positional-only parameters, the injected one included; everything else goes by name.
    `*args` and `**kwargs` are left out (`open` says that `**kwargs` was there), and so is what a `partial` has bound.
    """

    parameters: tuple[inspect.Parameter, ...]
    context: str | None
    positional: tuple[str, ...]
    open: bool

    def arrange(self, values: dict[str, object], context: ToolContext) -> tuple[list[object], dict[str, object]]:
        """Values by name → positional and keyword arguments, with the context put in. Takes over `values`."""
        if self.context is not None:
            values[self.context] = context
        if not self.positional:
            return [], values
        defaults = {parameter.name: parameter.default for parameter in self.parameters}
        return [values.pop(name, defaults.get(name)) for name in self.positional], values


def underlying(function: Callable[..., object]) -> Callable[..., object]:
    """The plain function behind partials, wrappers, bound methods and callable objects: it has the docstring."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif inspect.ismethod(function):
            function = function.__func__
        elif inspect.isroutine(function):
            unwrapped: Callable[..., object] = inspect.unwrap(function)
            return unwrapped
        else:
            function = type(function).__call__


def read_signature(name: str, function: Callable[..., object]) -> Signature:
    """Read what `function` takes; no annotation is resolved yet. Raises `ConfigError` where Python cannot tell."""
    try:
        found = inspect.signature(function)
    except (ValueError, TypeError, NameError) as error:
        raise ConfigError(
            f"tool {name!r}: Python cannot tell its parameters ({error}); wrap it in a function"
        ) from error
    bound = frozenset(function.keywords) if isinstance(function, functools.partial) else frozenset[str]()
    taken = [each for each in found.parameters.values() if each.kind not in _STARRED and each.name not in bound]
    contexts = [each.name for each in taken if _is_context(each.annotation)]
    if len(contexts) > 1:
        raise ConfigError(f"tool {name!r}: only one parameter may be a ToolContext, not {', '.join(contexts)}")
    return Signature(
        parameters=tuple(taken),
        context=contexts[0] if contexts else None,
        positional=tuple(each.name for each in taken if each.kind is inspect.Parameter.POSITIONAL_ONLY),
        open=any(each.kind is inspect.Parameter.VAR_KEYWORD for each in found.parameters.values()),
    )


def resolve(
    name: str, function: Callable[..., object], signature: Signature, names: Mapping[str, object]
) -> tuple[Parameter, ...]:
    """The parameters for the model, annotations resolved in the function's module, closure and then `names`.

    Raises `ConfigError` for an annotation whose name does not exist at run time.
    """
    target = underlying(function)
    scope = {**names, **_closure(target)}
    module = getattr(target, "__globals__", {})
    resolved: list[Parameter] = []
    for each in signature.parameters:
        if each.name == signature.context:
            continue
        if each.name in ("self", "cls") and each.annotation is NO_DEFAULT and each is signature.parameters[0]:
            raise ConfigError(
                f"tool {name!r} takes {each.name!r}: make the tool of the bound method, as in "
                f"tool(thing.{target.__name__})"
            )
        annotation = _resolved(name, each, module, scope)
        resolved.append(Parameter(each.name, annotation, each.default))
    return tuple(resolved)


def names_in_reach(function: Callable[..., object], frame: FrameType) -> Mapping[str, object]:
    """Of the locals of `frame`, which decorates `function`, those that its postponed annotations name.

    A class made inside a function is found by nothing else; only these few are kept, never the frame.
    """
    target = underlying(function)
    inside = "<locals>" in target.__qualname__ and frame.f_globals is getattr(target, "__globals__", None)
    if not inside:
        return {}
    texts = [each for each in target.__annotations__.values() if isinstance(each, str)]
    wanted = {word for text in texts for word in re.findall(r"\w+", text)}
    around = frame.f_locals
    return {name: around[name] for name in sorted(wanted) if name in around}


def _closure(function: Callable[..., object]) -> dict[str, object]:
    code = getattr(function, "__code__", None)
    cells = getattr(function, "__closure__", None) or ()
    found: dict[str, object] = {}
    for name, cell in zip(code.co_freevars if code else (), cells, strict=False):
        with suppress(ValueError):  # an empty cell: the name is bound later
            found[name] = cell.cell_contents
    for parameter in getattr(function, "__type_params__", ()):
        found[parameter.__name__] = parameter
    return found


def _resolved(
    name: str, parameter: inspect.Parameter, module: Mapping[str, object], scope: Mapping[str, object]
) -> object:
    if parameter.annotation is NO_DEFAULT:
        return Any
    carrier = lambda: None  # noqa: E731  (get_type_hints wants something that may carry annotations)
    carrier.__annotations__ = {parameter.name: parameter.annotation}
    try:
        return typing.get_type_hints(carrier, dict(module), dict(scope), include_extras=True)[parameter.name]
    except NameError as error:
        raise ConfigError(
            f"tool {name!r}: the annotation of {parameter.name!r} ({parameter.annotation}) uses {error.name!r}, which "
            "does not exist when the program runs; import it outside `if TYPE_CHECKING:`, or give parameters="
        ) from error
    except Exception as error:
        raise ConfigError(
            f"tool {name!r}: the annotation of {parameter.name!r} ({parameter.annotation}) cannot be read: {error}"
        ) from error


def _is_context(annotation: object) -> bool:
    """Also true for the postponed text, so that `ToolContext` may be imported under `TYPE_CHECKING`."""
    if annotation is ToolContext:
        return True
    if isinstance(annotation, str):
        words = (word.strip().rpartition(".")[2] for word in annotation.split("|"))
        return "ToolContext" in words or annotation.replace("typing.", "") == "Optional[ToolContext]"
    if typing.get_origin(annotation) is Annotated:
        return _is_context(typing.get_args(annotation)[0])
    return ToolContext in typing.get_args(annotation)
