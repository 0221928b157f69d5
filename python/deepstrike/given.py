"""What the callers of a runner give it, checked before anything begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from deepstrike.errors import ConfigError
from deepstrike.host.parts import checked_part
from deepstrike.host.requests import given
from deepstrike.text import well_formed
from deepstrike.wire.message import Text

if TYPE_CHECKING:
    from deepstrike.host.requests import Given
    from deepstrike.wire.message import Part

MAX_MESSAGE: Final = 60 * 1024
"""At most so many bytes of text are one message of `send`."""


def message(text: object) -> str:
    """What `send` says. Raises `ConfigError`."""
    if not isinstance(text, str) or not text.strip():
        raise ConfigError("a message is a text that is not empty")
    if len(text.encode(errors="replace")) > MAX_MESSAGE:
        raise ConfigError(f"a message has at most {MAX_MESSAGE} bytes; start a goal with a longer one")
    return text


def session_name(session_id: str) -> str:
    """The id of a session. Raises `ConfigError` for anything else."""
    if not isinstance(session_id, str):
        raise ConfigError(f"session_id must be a text, not {type(session_id).__name__}")
    return session_id


def agent_name(agent_id: str) -> str:
    """The name of an agent. Raises `ConfigError` for anything else."""
    if not isinstance(agent_id, str) or not agent_id:
        raise ConfigError("agent_id must be a text that names an agent")
    return agent_id


def moment(now_ms: int) -> int:
    """A time in milliseconds since 1970. Raises `ConfigError` for anything else."""
    if isinstance(now_ms, bool) or not isinstance(now_ms, int) or not 0 <= now_ms < 2**53:
        raise ConfigError("now_ms must be milliseconds since 1970, as int(time.time() * 1000)")
    return now_ms


def answers_given(answers: Mapping[str, object] | None) -> dict[str, Given]:
    """Answers by the id of their request. Raises `ConfigError` for anything else."""
    if answers is None:
        return {}
    if not isinstance(answers, Mapping) or not all(isinstance(key, str) for key in answers):
        raise ConfigError("answers must be a dict of values by request id, as in answers={request.request_id: True}")
    return {key: given(value) for key, value in answers.items()}


def goal_parts(goal: str | Sequence[Part]) -> tuple[Part, ...]:
    """A goal as content parts, of which one says something. Raises `ConfigError` for anything else."""
    if not isinstance(goal, Sequence):
        raise ConfigError(f"the goal must be a text or a list of content parts, not {type(goal).__name__}")
    parts = (_part(Text(goal)),) if isinstance(goal, str) else tuple(map(_part, goal))
    if not any(not isinstance(part, Text) or part.text.strip() for part in parts):
        raise ConfigError("the goal is empty: give a text, or content parts (Text, Image, File)")
    return parts


def _part(part: Part) -> Part:
    try:
        return checked_part(part)
    except TypeError as error:
        raise ConfigError(f"the goal: {error}") from error


def feedback_given(feedback: Sequence[str]) -> tuple[str, ...]:
    """What was said of an earlier attempt. Raises `ConfigError` for anything else."""
    if isinstance(feedback, str) or not all(isinstance(text, str) for text in feedback):
        raise ConfigError("feedback must be a list of texts: write feedback=[…]")
    return tuple(map(well_formed, feedback))


def criteria_given(criteria: Sequence[str] | None) -> tuple[str, ...]:
    """What makes an answer good. Raises `ConfigError` for anything else."""
    if isinstance(criteria, str) or not all(isinstance(text, str) for text in criteria or ()):
        raise ConfigError("criteria must be a list of texts: write criteria=[…]")
    return tuple(map(well_formed, criteria or ()))
