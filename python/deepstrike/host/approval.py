"""Whether a call may run, as a person says it, and what that comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deepstrike.errors import ConfigError
from deepstrike.governance.approval import Approve, Deny
from deepstrike.host.exchange import answer_text
from deepstrike.text import well_formed
from deepstrike.wire import input as wire
from deepstrike.wire.message import Err, Ok

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepstrike.wire.effect import AskUser
    from deepstrike.wire.message import Validated

    # The arguments of a question, as they were shown or others.
    Validate = Callable[[AskUser, str], Validated]

FITTING: Final = 'True, False, Deny("why") or Approve(arguments)'
_NO: Final = "the person who was asked did not allow it"
_CHANGED: Final = (
    "the tool has changed since permission was asked for, so that it would not get the arguments that were shown; "
    "call it again"
)


@dataclass(frozen=True, slots=True)
class Ruling:
    """`allowed`, by other `arguments` (JSON text) where they are given; or not, for a `reason`."""

    allowed: bool
    reason: str = ""
    arguments: str | None = None


def ruling(answer: object) -> Ruling | None:
    """What an answer to a permission request says; None for one that is none.

    Raises `ConfigError` for arguments that are no dict which JSON can hold, and a reason that is no text.
    """
    match answer:
        case bool():
            return Ruling(answer, "" if answer else _NO)
        case Deny(reason):
            if not isinstance(reason, str):
                raise ConfigError(f"the reason of Deny(…) must be a text, not {type(reason).__name__}")
            return Ruling(False, well_formed(reason) or _NO)
        case Approve(None):
            return Ruling(True)
        case Approve(arguments):
            return Ruling(True, arguments=_text(arguments))
        case _:
            return None


def answer_to(ask: AskUser, said: Ruling, validate: Validate) -> wire.Approve | wire.Deny:
    """The answer to the kernel's question. An approval is of the arguments that were shown, and of no others."""
    if not said.allowed:
        return wire.Deny(said.reason)
    if said.arguments is not None:
        found = validate(ask, said.arguments)
        return wire.Approve(Ok(said.arguments) if isinstance(found, Ok) and found.text is None else found)
    found = validate(ask, ask.args)
    if isinstance(found, Err):
        return wire.Approve(found)
    return wire.Approve() if found.text in (None, ask.args) else wire.Deny(_CHANGED)


def _text(arguments: object) -> str:
    if not isinstance(arguments, Mapping) or not all(isinstance(name, str) for name in arguments):
        kind = type(arguments).__name__
        raise ConfigError(f"the arguments of Approve(…) must be a dict by parameter name, not {kind}")
    try:
        return answer_text(dict(arguments))
    except ConfigError as error:
        raise ConfigError(f"the arguments of Approve(…): {error.message}") from error
