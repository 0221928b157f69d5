"""What a session waits for, as its caller sees it, and the answers that it is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import msgspec

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

    Path = tuple[str, ...]


def open_requests(effects: Iterable[Effect], path: Path = ()) -> tuple[PendingRequest, ...]:
    """The questions among the effects that are owed, the oldest first; a sub-agent's own where one waits with them.

    `path` names the agents from the root down to the one that owes them.
    """
    return tuple(request for effect in effects if isinstance(effect, AskUser) for request in requests_of(effect, path))


def requests_of(ask: AskUser, path: Path = ()) -> tuple[PendingRequest, ...]:
    """What an open question is to the caller: one request, or those that a sub-agent waits with."""
    if ask.kind != "agent":
        return (_pending(ask, path),)
    kept = msgspec.convert(json_value(ask.payload), _Kept)
    return tuple(PendingRequest(**msgspec.structs.asdict(each)) for each in kept.requests)


class _Asked(msgspec.Struct, frozen=True):
    """A `PendingRequest` as a log keeps it."""

    request_id: str
    kind: Literal["approval", "suspension"]
    call_id: str
    name: str
    arguments: dict[str, object]
    payload: object = None
    reason: str | None = None


class _Kept(msgspec.Struct, frozen=True):
    """What a sub-agent waits with, as its parent's log keeps it."""

    requests: tuple[_Asked, ...] = ()


def suspension(ask: AskUser, path: Path = ()) -> ToolSuspendEvent:
    """The event that a suspension was, or would have been, shown with."""
    return ToolSuspendEvent(ask.call_id, ask.name, request_id(ask.id, path), json_value(ask.payload))


def permission(ask: AskUser, path: Path = ()) -> PermissionRequestEvent:
    """The event that a permission request was, or would have been, shown with."""
    return PermissionRequestEvent(request_id(ask.id, path), ask.call_id, ask.name, _arguments(ask), ask.payload)


@dataclass(frozen=True, slots=True)
class Given:
    """An answer before it is known what it answers: JSON text, what it says of a permission request, or both."""

    text: str | None
    ruling: Ruling | None


def given(answer: object) -> Given:
    """An answer as a caller gave it. Raises `ConfigError` for one that fits no question."""
    said = ruling(answer)
    return Given(answer_text(answer) if said is None or isinstance(answer, bool) else None, said)


def resolve(
    effects: Iterable[Effect], answers: Mapping[str, Given], validate: Validate, path: Path = ()
) -> list[Answer]:
    """Answers, by request id or call id, to the questions that are owed; in the order of the questions.

    Answers to several requests of one sub-agent are one answer to the call that put it to work. Raises `ConfigError`
    for an id that names no open question, or more than one, or one that has two answers, and for an answer of the wrong
    kind.
    """
    asks = [effect for effect in effects if isinstance(effect, AskUser)]
    opens = [_Open(request, ask) for ask in asks for request in requests_of(ask, path)]
    found: dict[str, tuple[_Open, Given]] = {}
    for key, answer in answers.items():
        asked = _asked_as(key, opens)
        if asked.id in found:
            raise ConfigError(f"there are two answers to request {asked.id!r}: by its id and by its call id")
        _require_fitting(key, asked, answer)
        found[asked.id] = asked, answer
    return [answer for ask in asks for answer in _answer(ask, found.values(), validate)]


@dataclass(frozen=True, slots=True)
class _Open:
    """An open request, and the question that it is part of."""

    request: PendingRequest
    ask: AskUser

    @property
    def id(self) -> str:
        return self.request.request_id


def _require_fitting(key: str, asked: _Open, answer: Given) -> None:
    name = asked.request.name
    if asked.request.kind == "suspension":
        if answer.text is None:
            raise ConfigError(
                f"request {key!r} is a question of the tool {name!r} itself: answer it with a value that JSON can "
                "hold, not with Approve(…) or Deny(…)"
            )
    elif answer.ruling is None:
        raise ConfigError(f"request {key!r} asks whether a call of {name!r} may run: answer {FITTING}")


def _answer(ask: AskUser, found: Iterable[tuple[_Open, Given]], validate: Validate) -> Iterable[Answer]:
    mine = {asked.id: answer for asked, answer in found if asked.ask is ask}
    if not mine:
        return
    if ask.kind == "agent":
        yield Answer(ask.id, Value(answers_text(mine)))
        return
    (answer,) = mine.values()
    if answer.text is not None and ask.kind == "suspension":
        yield Answer(ask.id, Value(answer.text))
    elif answer.ruling is not None:
        yield Answer(ask.id, answer_to(ask, answer.ruling, validate))


def answers_text(answers: Mapping[str, Given]) -> str:
    """Answers to the questions of a sub-agent, as its parent's log keeps them."""
    return msgspec.json.encode(answers).decode()


def answers_in(texts: Iterable[str]) -> dict[str, Given]:
    """All answers that were kept, by request id."""
    found: dict[str, Given] = {}
    for text in texts:
        found |= msgspec.json.decode(text, type=dict[str, Given])
    return found


def _asked_as(key: str, opens: list[_Open]) -> _Open:
    for asked in opens:
        if asked.id == key:
            return asked
    named = [asked for asked in opens if asked.request.call_id == key]
    if len(named) == 1:
        return named[0]
    if named:
        raise ConfigError(f"call {key!r} has several open requests; answer by request id: {_listed(named)}")
    raise ConfigError(f"request {key!r} is not open: it was answered before, or never asked. {_all(opens)}")


def _all(opens: list[_Open]) -> str:
    return f"Open requests: {_listed(opens)}" if opens else "The session has no open request"


def _listed(opens: list[_Open]) -> str:
    return ", ".join(
        f"{asked.id!r} ({asked.request.kind} of {asked.request.name}, call {asked.request.call_id!r})"
        for asked in opens
    )


def _pending(ask: AskUser, path: Path) -> PendingRequest:
    named, asked = _arguments(ask), request_id(ask.id, path)
    if ask.kind == "suspension":
        return PendingRequest(asked, "suspension", ask.call_id, ask.name, named, payload=json_value(ask.payload))
    return PendingRequest(asked, "approval", ask.call_id, ask.name, named, reason=ask.payload)


def _arguments(ask: AskUser) -> dict[str, object]:
    arguments = json_value(ask.args)
    return arguments if isinstance(arguments, dict) else {}
