"""What a session waits for, as its caller sees it, and the answers that it is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepstrike.errors import ConfigError
from deepstrike.host.narrate import json_value, request_id
from deepstrike.stream import PendingRequest, ToolSuspendEvent
from deepstrike.wire.effect import AskUser
from deepstrike.wire.input import Answer, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from deepstrike.wire.effect import Effect


def open_requests(effects: Iterable[Effect]) -> tuple[PendingRequest, ...]:
    """The questions among the effects that are owed, the oldest first."""
    return tuple(_pending(effect) for effect in effects if isinstance(effect, AskUser))


def suspension(ask: AskUser) -> ToolSuspendEvent:
    """The event that a suspension was, or would have been, shown with."""
    return ToolSuspendEvent(ask.call_id, ask.name, request_id(ask.id), json_value(ask.payload))


def resolve(effects: Iterable[Effect], answers: Mapping[str, str]) -> list[Answer]:
    """Answers, as JSON text by request id or call id, to the questions that are owed; in the order of the questions.

    Raises `ConfigError` for an id that names no open question, or more than one, or one that has two answers.
    """
    asks = [effect for effect in effects if isinstance(effect, AskUser)]
    given: dict[int, str] = {}
    for key, text in answers.items():
        ask = _asked_as(key, asks)
        if ask.id in given:
            raise ConfigError(f"there are two answers to request {request_id(ask.id)!r}: by its id and by its call id")
        if ask.kind != "suspension":
            raise ConfigError(f"request {key!r} asks for an approval, which cannot be answered with a value")
        given[ask.id] = text
    return [Answer(ask.id, Value(given[ask.id])) for ask in asks if ask.id in given]


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
    arguments = json_value(ask.args)
    named = arguments if isinstance(arguments, dict) else {}
    if ask.kind == "suspension":
        return PendingRequest(
            request_id(ask.id), "suspension", ask.call_id, ask.name, named, payload=json_value(ask.payload)
        )
    return PendingRequest(request_id(ask.id), "approval", ask.call_id, ask.name, named, reason=ask.payload)
