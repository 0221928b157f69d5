"""A signal: something that happened outside and that a run should hear of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from deepstrike.errors import ConfigError
from deepstrike.text import well_formed, well_formed_json
from deepstrike.wire.signal import Signal

Urgency = Literal["low", "normal", "high", "critical"]

URGENCIES: Final[tuple[Urgency, ...]] = get_args(Urgency)
"""From the least to the most urgent."""

MAX_PAYLOAD: Final = 64 * 1024
"""At most so many bytes of JSON are one payload."""

MAX_WORD: Final = 100
_MAX_KEY: Final = 500

USER: Final = "user"
"""The source of what `runner.send` says; nothing that comes in from outside may call itself so."""


@dataclass(frozen=True, slots=True)
class RuntimeSignal:
    """Something that happened.

    kind: what, as a word ("mail", "interrupt"); the model reads it.
    payload: the details, a dict that JSON can hold, at most 64 KiB. It is copied.
    source, signal_type: who says so, and what sort of thing it is; the model reads both.
    urgency: `low` and `normal` are read with the next model call, `high` before any work that has not begun, `critical`
        stops the model call and the tools that run, and with kind "interrupt" ends the run `user_abort`.
    dedupe_key: signals of one key (and one `session_id`) are one signal.
    session_id: the session that it is for; None means every active run for critical ones, the oldest one for others.

    `kind`, `source` and `signal_type` are one printable line of at most 100 characters. Raises `ConfigError` (a
    `ValueError`) that names the field.
    """

    kind: str
    payload: Mapping[str, object] = field(default_factory=dict)
    source: str = "custom"
    signal_type: str = "event"
    urgency: Urgency = "normal"
    dedupe_key: str | None = None
    session_id: str | None = None

    def __post_init__(self) -> None:
        for name, word in (("kind", self.kind), ("source", self.source), ("signal_type", self.signal_type)):
            _require_word(name, word)
        if self.urgency not in URGENCIES:
            raise ConfigError(f"urgency must be one of {', '.join(map(repr, URGENCIES))}, not {self.urgency!r}")
        _require_name("dedupe_key", self.dedupe_key)
        _require_name("session_id", self.session_id)
        if self.session_id is not None and well_formed(self.session_id) != self.session_id:
            raise ConfigError("a signal's session_id must be text that UTF-8 can write: it has a lone surrogate")
        if self.dedupe_key is not None:
            # Nothing that is kept takes a lone surrogate; as an escape two keys that differ go on to differ.
            object.__setattr__(self, "dedupe_key", self.dedupe_key.encode("utf-8", "backslashreplace").decode())
        # A copy: what the caller does to its own dict later must not change what is under way.
        object.__setattr__(self, "payload", json.loads(_payload_text(self.payload)))

    @property
    def stops(self) -> bool:
        """Whether it ends the runs that it reaches."""
        return self.urgency == "critical" and self.kind == "interrupt"


def is_scheduled(signal: RuntimeSignal) -> bool:
    """Whether it is a prompt that came due."""
    return signal.kind == "scheduled" and signal.signal_type == "job" and isinstance(signal.payload.get("goal"), str)


def as_wire(signal: RuntimeSignal, delivery: str | None = None, *, from_user: bool = False) -> Signal:
    """The signal as it crosses into the kernel; `delivery` names this delivery."""
    return Signal(
        signal.kind,
        payload_text(signal),
        signal.source,
        signal.signal_type,
        signal.urgency,
        signal.dedupe_key,
        delivery,
        from_user,
    )


def from_wire(signal: Signal, session_id: str | None = None) -> RuntimeSignal:
    """The signal as it was recorded. What was recorded is not judged again: it may be of another release."""
    made = object.__new__(RuntimeSignal)
    fields: dict[str, object] = {
        "kind": signal.kind,
        "payload": _loaded(signal.payload),
        "source": signal.source,
        "signal_type": signal.signal_type,
        "urgency": signal.urgency,
        "dedupe_key": signal.dedupe_key,
        "session_id": session_id,
    }
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made


def payload_text(signal: RuntimeSignal) -> str:
    """The payload as JSON text on one line."""
    return _json_text(signal.payload)


def _loaded(text: str) -> dict[str, object]:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return {"text": text}
    return value if isinstance(value, dict) else {"value": value}


def _require_word(name: str, word: object) -> None:
    if not isinstance(word, str) or not word.strip():
        raise ConfigError(f"a signal's {name} must be a text that is not empty, not {word!r}")
    if len(word) > MAX_WORD or not word.isprintable():
        raise ConfigError(
            f"a signal's {name} must be one printable line of at most {MAX_WORD} characters; use the payload"
        )


def _require_name(name: str, value: object) -> None:
    if value is not None and (not isinstance(value, str) or not 0 < len(value) <= _MAX_KEY):
        raise ConfigError(f"a signal's {name} must be a text of 1 to {_MAX_KEY} characters, or None, not {value!r:.80}")


def _payload_text(payload: object) -> str:
    if not isinstance(payload, Mapping) or not all(isinstance(name, str) for name in payload):
        raise ConfigError(f"a signal's payload must be a dict with texts for keys, not {type(payload).__name__}")
    try:
        text = _json_text(payload)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"a signal's payload must be something that JSON can hold: {error}") from error
    if len(text.encode()) > MAX_PAYLOAD:
        raise ConfigError(
            f"a signal's payload has more than {MAX_PAYLOAD} bytes as JSON; keep it elsewhere and send its name"
        )
    return text


def _json_text(payload: Mapping[str, object]) -> str:
    return well_formed_json(json.dumps(dict(payload), ensure_ascii=False, separators=(",", ":"), allow_nan=False))
