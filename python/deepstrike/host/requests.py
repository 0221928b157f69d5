"""What a session waits for, as its caller sees it, and the answers that it is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deepstrike.errors import ConfigError
from deepstrike.host.approval import FITTING, Ruling, answer_to, ruling
from deepstrike.host.exchange import answer_text
from deepstrike.host.narrate import json_value, request_id
from deepstrike.stream import PendingRequest, PermissionRequestEvent, ToolSuspendEvent
from deepstrike.wire.effect import AskUser
from deepstrike.wire.input import Answer, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from deepstrike.host.approval import Validate
    from deepstrike.wire.effect import Effect
    from deepstrike.wire.input import AnswerBody


def open_requests(effects: Iterable[Effect]) -> tuple[PendingRequest, ...]:
    """The questions among the effects that are owed, the oldest first."""
    return tuple(_pending(effect) for effect in effects if isinstance(effect, AskUser))


def suspension(ask: AskUser) -> ToolSuspendEvent:
    """The event that a suspension was, or would have been, shown with."""
    return ToolSuspendEvent(ask.call_id, ask.name, request_id(ask.id), json_value(ask.payload))


def permission(ask: AskUser) -> PermissionRequestEvent:
    """The event that a permission request was, or would have been, shown with."""
    return PermissionRequestEvent(request_id(ask.id), ask.call_id, ask.name, _arguments(ask), ask.payload)


@dataclass(frozen=True, slots=True)
class Given:
    """An answer before it is known what it answers: JSON text, what it says of a permission request, or both."""

    text: str | None
    ruling: Ruling | None


def given(answer: object) -> Given:
    """An answer as a caller gave it. Raises `ConfigError` for one that fits no question."""
    said = ruling(answer)
    return Given(answer_text(answer) if said is None or isinstance(answer, bool) else None, said)


def resolve(effects: Iterable[Effect], answers: Mapping[str, Given], validate: Validate) -> list[Answer]:
    """Answers, by request id or call id, to the questions that are owed; in the order of the questions.

    Raises `ConfigError` for an id that names no open question, or more than one, or one that has two answers, and for
    an answer of the wrong kind.
    """
    asks = [effect for effect in effects if isinstance(effect, AskUser)]
    bodies: dict[int, AnswerBody] = {}
    for key, answer in answers.items():
        ask = _asked_as(key, asks)
        if ask.id in bodies:
            raise ConfigError(f"there are two answers to request {request_id(ask.id)!r}: by its id and by its call id")
        bodies[ask.id] = _body(key, ask, answer, validate)
    return [Answer(ask.id, bodies[ask.id]) for ask in asks if ask.id in bodies]


def _body(key: str, ask: AskUser, answer: Given, validate: Validate) -> AnswerBody:
    if ask.kind == "suspension":
        if answer.text is None:
            raise ConfigError(
                f"request {key!r} is a question of the tool {ask.name!r} itself: answer it with a value that JSON can "
                "hold, not with Approve(…) or Deny(…)"
            )
        return Value(answer.text)
    if answer.ruling is None:
        raise ConfigError(f"request {key!r} asks whether a call of {ask.name!r} may run: answer {FITTING}")
    return answer_to(ask, answer.ruling, validate)


def _asked_as(key: str, asks: list[AskUser]) -> AskUser:
    for ask in asks:
        if request_id(ask.id) == key:
            return ask
    named = [ask for ask in asks if ask.call_id == key]
    if len(named) == 1:
        return named[0]
    if named:
        raise ConfigError(f"call {key!r} has several open requests; answer by request id: {_listed(named)}")
    raise ConfigError(f"request {key!r} is not open: it was answered before, or never asked. {_open(asks)}")


def _open(asks: list[AskUser]) -> str:
    return f"Open requests: {_listed(asks)}" if asks else "The session has no open request"


def _listed(asks: list[AskUser]) -> str:
    return ", ".join(f"{request_id(ask.id)!r} ({ask.kind} of {ask.name}, call {ask.call_id!r})" for ask in asks)


def _pending(ask: AskUser) -> PendingRequest:
    named = _arguments(ask)
    if ask.kind == "suspension":
        return PendingRequest(
            request_id(ask.id), "suspension", ask.call_id, ask.name, named, payload=json_value(ask.payload)
        )
    return PendingRequest(request_id(ask.id), "approval", ask.call_id, ask.name, named, reason=ask.payload)


def _arguments(ask: AskUser) -> dict[str, object]:
    arguments = json_value(ask.args)
    return arguments if isinstance(arguments, dict) else {}
