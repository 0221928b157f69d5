"""Bound secrets in what a run is about to record: withheld from the kernel, kept only for the tool that is called."""

from __future__ import annotations

import json
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
_NO_ANSWERS = "{}"
# The session is known by its id, and artefacts are replayed as they came: a signature holds only over every byte.
_UNTOUCHED = frozenset({"session", "type", "dialect"})


class Vault:
    """What the runs of one runner withhold, by session, the oldest forgotten first. From any thread.

    In this process only: a call that waits for an answer gets its values when the answer comes, if it comes here.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: OrderedDict[str, dict[tuple[str, str], str]] = OrderedDict()

    def take(self, session_id: str) -> dict[tuple[str, str], str]:
        """What is withheld in this session, for its one run to use and change until it is given back."""
        with self._lock:
            return self._sessions.pop(session_id, {})

    def keep(self, session_id: str, withheld: dict[tuple[str, str], str]) -> None:
        """Keep what a run that is over has left."""
        if not withheld:
            return
        with self._lock:
            self._sessions[session_id] = withheld
            while len(self._sessions) > MAX_SESSIONS:
                self._sessions.popitem(last=False)


class Secrecy:
    """What one run withholds. Costs a look at each input's bytes where something is bound, else next to nothing."""

    __slots__ = ("_calls", "withheld")

    def __init__(self, withheld: dict[tuple[str, str], str] | None = None) -> None:
        """`withheld` is what earlier runs of the session withheld, of calls that still wait."""
        # What a tool is to get, by call and by what the kernel was given in its place: for the invocation that is to
        # come, in this process only.
        self.withheld = {} if withheld is None else withheld
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
        """What the tool gets, once; None where something was withheld in another process, which nobody here knows.

        A sub-agent that had begun knows its task from its own log, and asks again what nobody here knows the answer of.
        """
        texts = (effect.args, *effect.answers)
        if not any(HIDDEN in text for text in texts):
            return effect
        known = [self.withheld.pop((effect.call_id, text), None) if HIDDEN in text else text for text in texts]
        if effect.grant is not None:
            unknown = (effect.args, *[_NO_ANSWERS for _ in effect.answers])
            known = [text or instead for text, instead in zip(known, unknown, strict=True)]
        found = [text for text in known if text is not None]
        if len(found) < len(texts):
            return None
        return msgspec.structs.replace(effect, args=found[0], answers=tuple(found[1:]))

    def again(self, effect: RunTool, opened: RunTool) -> None:
        """The tool was closed at a question and will be called anew: it is to get the same once more."""
        for hidden, text in zip((effect.args, *effect.answers), (opened.args, *opened.answers), strict=True):
            if hidden != text:
                self._keep(effect.call_id, hidden, text)

    def validating(self, validate: Callable[[str, str], Validated]) -> Validate:
        """`validate` for the arguments of a question, which may stand for others: it checks those that are meant.

        Where nobody here knows them any more they pass: the call is not run.
        """

        def check(ask: AskUser, text: str) -> Validated:
            real = self._meant(ask, text)
            if real is None:
                return Ok()
            found = validate(ask.name, real)
            if real == text or not isinstance(found, Ok):
                return found
            if found.text is None or found.text == real:
                return Ok() if text == ask.args else Ok(real)
            return found

        return check

    def _meant(self, ask: AskUser, text: str) -> str | None:
        """What a person means by these arguments: behind what they were shown, what it stands for.

        None where nobody here knows it, or where it stands in a place that they were not shown it in.
        """
        if HIDDEN not in text or HIDDEN not in ask.args:
            return text
        real = self.withheld.get((ask.call_id, ask.args))
        if real is None or text == ask.args:
            return real
        try:
            meant = _restored(json.loads(text), json.loads(ask.args), json.loads(real))
            return json.dumps(meant, ensure_ascii=False, allow_nan=False)
        except (ValueError, RecursionError):
            return None

    def _answered(self, item: Answer, owed: Iterable[Effect]) -> None:
        ask = next((each for each in owed if isinstance(each, AskUser) and each.id == item.effect), None)
        match item.answer:
            case Value(json=text) if ask is not None:
                self._withhold(ask.call_id, text)
            case Approve(arguments=Ok(text=str(text))) if ask is not None:
                meant = self._meant(ask, text)
                if meant is not None:
                    self._withhold(ask.call_id, meant)
            case _:
                pass

    def _withhold(self, call_id: str, text: str) -> None:
        hidden = bound().hidden(text)
        if HIDDEN in hidden:
            self._keep(call_id, hidden, text)

    def _keep(self, call_id: str, hidden: str, text: str) -> None:
        self.withheld[call_id, hidden] = text
        while len(self.withheld) > MAX_WITHHELD:
            self.withheld.pop(next(iter(self.withheld)))


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


def _restored(given: object, shown: object, real: object) -> object:
    """`given`, with the `real` value wherever what was `shown` stands unchanged for one. ValueError for elsewhere."""
    if isinstance(given, str) and HIDDEN in given:
        if given != shown or real is None:
            raise ValueError("nobody was shown this here")
        return real
    if isinstance(given, dict):
        if any(HIDDEN in name for name in given):
            raise ValueError("a name cannot be told from another one")
        return {name: _restored(each, _at(shown, name), _at(real, name)) for name, each in given.items()}
    if isinstance(given, list):
        return [_restored(each, _at(shown, at), _at(real, at)) for at, each in enumerate(given)]
    return given


def _at(value: object, place: str | int) -> object:
    if isinstance(value, dict):
        return value.get(place)
    return value[place] if isinstance(value, list) and isinstance(place, int) and place < len(value) else None


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
