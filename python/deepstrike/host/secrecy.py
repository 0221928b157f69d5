"""Bound secrets in what a run is about to record: withheld from the kernel, kept only for the tool that is called."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

import msgspec

from deepstrike.host.narrate import json_value
from deepstrike.kernel import decode_record, encode_input
from deepstrike.secrets import HIDDEN, bound
from deepstrike.tools.results import as_json
from deepstrike.wire.effect import AskUser
from deepstrike.wire.event import Replied
from deepstrike.wire.input import Answer, Approve, Input, Reply, Value
from deepstrike.wire.message import CallPart, Ok, RecordedCall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from deepstrike.host.approval import Validate
    from deepstrike.secrets import Bound
    from deepstrike.wire.effect import Effect, RunTool
    from deepstrike.wire.message import Validated

MAX_SESSIONS = 256
MAX_WITHHELD = 1_000
"""Texts of one session: calls that are refused never come for theirs."""

_REPLIED = b'"event":{"type":"replied",'
_MARK = HIDDEN.encode()
# The session is known by its id, and artefacts are replayed as they came: a signature holds only over every byte.
_UNTOUCHED = frozenset({"session", "type", "dialect"})


class Vault:
    """What the runs of one runner withhold, by session, the oldest forgotten first. From any thread.

    In this process only: a call that waits for an answer gets its values when the answer comes, if it comes here.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: OrderedDict[str, dict[tuple[str, str], str]] = OrderedDict()

    def of(self, session_id: str) -> dict[tuple[str, str], str]:
        """What is withheld in this session, for its one run to use and change."""
        with self._lock:
            withheld = self._sessions.pop(session_id, None)
            self._sessions = OrderedDict((key, each) for key, each in self._sessions.items() if each)
            while len(self._sessions) >= MAX_SESSIONS:
                self._sessions.popitem(last=False)
            self._sessions[session_id] = found = {} if withheld is None else withheld
            return found


class Secrecy:
    """What one run withholds. Costs a look at each input's bytes where something is bound, else next to nothing."""

    __slots__ = ("_calls", "_withheld")

    def __init__(self, withheld: dict[tuple[str, str], str] | None = None) -> None:
        """`withheld` is what earlier runs of the session withheld, of calls that still wait."""
        # What a tool is to get, by call and by what the kernel was given in its place: for the invocation that is to
        # come, in this process only.
        self._withheld = {} if withheld is None else withheld
        self._calls: list[str] = []

    def encoded(self, item: Input, owed: Callable[[], Iterable[Effect]]) -> bytes:
        """`item` as the kernel gets it. `owed` tells whose question an answer answers."""
        data, secrets = encode_input(item), bound()
        stands_in = secrets.stand_in(data)
        self._calls = []
        if stands_in or _MARK in data:
            if isinstance(item, Reply):
                self._calls = [_arguments(part) for part in item.parts if isinstance(part, CallPart)]
            elif isinstance(item, Answer):
                self._answered(item, owed())
        if not stands_in:
            return data
        return encode_input(msgspec.convert(_hidden(msgspec.to_builtins(item), secrets), Input))

    def recorded(self, lines: Iterable[bytes]) -> None:
        """The calls of the reply that was just encoded have got their ids."""
        for line in lines if self._calls else ():
            if _REPLIED in line and isinstance(event := decode_record(line).event, Replied):
                calls = [part for part in event.parts if isinstance(part, RecordedCall)]
                for call, given in zip(calls, self._calls, strict=False):
                    self._withhold(call.id, given)

    def opened(self, effect: RunTool) -> RunTool | None:
        """What the tool gets, once; None where something was withheld in another process, which nobody here knows."""
        texts = (effect.args, *effect.answers)
        if not any(HIDDEN in text for text in texts):
            return effect
        known = [self._withheld.pop((effect.call_id, text), None) if HIDDEN in text else text for text in texts]
        found = [text for text in known if text is not None]
        if len(found) < len(texts):
            return None
        return msgspec.structs.replace(effect, args=found[0], answers=tuple(found[1:]))

    def again(self, effect: RunTool, opened: RunTool) -> None:
        """The tool was closed at a question and will be called anew: it is to get the same once more."""
        for hidden, text in zip((effect.args, *effect.answers), (opened.args, *opened.answers), strict=True):
            if hidden != text:
                self._keep(effect.call_id, hidden, text)

    def validating(self, validate: Validate) -> Validate:
        """`validate` for texts that may stand for others: what is withheld is checked as it is.

        What nobody here knows any more passes: its call is not run.
        """

        def check(name: str, text: str) -> Validated:
            if HIDDEN not in text:
                return validate(name, text)
            real = next((given for (_, hidden), given in self._withheld.items() if hidden == text), None)
            found = validate(name, text if real is None else real)
            if isinstance(found, Ok):
                return Ok() if found.text in (None, real) else found
            return Ok() if real is None else found

        return check

    def _answered(self, item: Answer, owed: Iterable[Effect]) -> None:
        match item.answer:
            case Value(json=text) | Approve(arguments=Ok(text=str(text))):
                for ask in owed:
                    if isinstance(ask, AskUser) and ask.id == item.effect:
                        self._withhold(ask.call_id, text)
            case _:
                pass

    def _withhold(self, call_id: str, text: str) -> None:
        hidden = bound().hidden(text)
        if HIDDEN in hidden:
            self._keep(call_id, hidden, text)

    def _keep(self, call_id: str, hidden: str, text: str) -> None:
        self._withheld[call_id, hidden] = text
        while len(self._withheld) > MAX_WITHHELD:
            self._withheld.pop(next(iter(self._withheld)))


def veiled(chunk: object | None) -> object | None:
    """What a tool yielded, without bound values: where one stands in it, it is shown as JSON holds it."""
    secrets = bound()
    if chunk is None or not secrets:
        return chunk
    try:
        text = as_json(chunk)
    except Exception:  # what cannot be told cannot be looked through either
        return None
    return json_value(secrets.hidden(text)) if secrets.stand_in(text.encode()) else chunk


def _arguments(call: CallPart) -> str:
    valid = call.validated
    return valid.text if isinstance(valid, Ok) and valid.text is not None else call.args_text


def _hidden(value: object, secrets: Bound) -> object:
    if isinstance(value, str):
        return secrets.hidden(value)
    if isinstance(value, list | tuple):
        return [_hidden(each, secrets) for each in value]
    if isinstance(value, dict):
        if value.get("type") == "opaque":
            return value
        return {name: each if name in _UNTOUCHED else _hidden(each, secrets) for name, each in value.items()}
    return value
