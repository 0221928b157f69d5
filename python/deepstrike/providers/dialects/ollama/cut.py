"""Whether the server cut the prompt without a word.

A server whose window is too small drops the oldest messages, or a part of a single long one, and answers as if nothing
had happened. Only its count of prompt tokens tells. That count must be read with care: old servers (until autumn 2024)
count only what was not cached, so a small count or none is nothing to go by in itself. Three things are evident:

* A count of half a power of two, or of half the window asked for, and two more: what the runner leaves of a prompt that
  is larger than its window.
* A prompt far larger than the window asked for, and a count that is not: whatever was cached, it cannot have fitted.
* A count far below the prompt, from a server that shows in the same answer that it is a newer one.

Source: Ollama's issues 17427 and 17889 and its runner's behaviour as users measured it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepstrike.providers.dialects.ollama.options import window
from deepstrike.wire.message import CallBlock, Notice, Text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepstrike.providers.base import ModelRequest
    from deepstrike.providers.dialects.base import Asked
    from deepstrike.wire.message import Turn

# Bytes of a request for each of its tokens: fewer than this many are nothing to look into.
_ODD_RATIO = 6
_LEAST_BYTES_A_TOKEN = 2
_SMALLEST_WINDOW = 512
# Our count and that of the model's own vocabulary differ; so much is more than they ever do on ordinary text.
_FAR = 1.5
_OVER = 1.1


def cut_notice(asked: Asked, counted: int | None, *, newer: bool) -> Notice | None:
    """What to tell if the server evidently cut the prompt. `newer`: it counts what it had cached as well.

    The tokens are only counted where the sizes look odd, so that a usual call costs nothing for a long history.
    """
    wanted = window(asked)
    half = _half_of(counted, wanted)
    if half is None and not _looks_odd(asked.request, counted, wanted, newer):
        return None
    prompt = _tokens(asked.request)
    if half is not None and prompt > half * _OVER:
        return _notice(prompt, counted, half, wanted)
    if prompt > wanted * _FAR and (counted is None or counted <= wanted):
        return _notice(prompt, counted, wanted, wanted)
    if newer and counted and prompt > counted * _FAR + _SMALLEST_WINDOW:
        return _notice(prompt, counted, None, wanted)
    return None


def _half_of(counted: int | None, wanted: int) -> int | None:
    """The window of which `counted` is what is left of a prompt that did not fit."""
    if counted is None:
        return None
    if abs(counted - 2 - wanted // 2) <= 1:
        return wanted
    full = (counted - 2) * 2
    return full if full >= _SMALLEST_WINDOW and full & (full - 1) == 0 else None


def _looks_odd(request: ModelRequest, counted: int | None, wanted: int, newer: bool) -> bool:
    size = len(request.memo.head) + len(request.memo.body)
    if size > wanted * _LEAST_BYTES_A_TOKEN * _FAR and (counted is None or size > counted * _ODD_RATIO):
        return True
    return newer and counted is not None and size > counted * _ODD_RATIO


def _tokens(request: ModelRequest) -> int:
    """Tokens of the prompt's texts, rather too few: templates drop old thinking and write tools in fewer words, so
    neither is counted, nor are images and the frames of messages."""
    from deepstrike.kernel import count

    return sum(count(text, "gpt-5") for text in _texts(request))


def _texts(request: ModelRequest) -> Iterator[str]:
    yield request.system_stable
    yield request.system_knowledge
    for turn in request.turns:
        yield from _of_turn(turn)


def _of_turn(turn: Turn) -> Iterator[str]:
    for part in turn.parts:
        if isinstance(part, Text):
            yield part.text
        elif isinstance(part, CallBlock):
            yield part.args_text


def _notice(prompt: int, counted: int | None, limit: int | None, wanted: int) -> Notice:
    saw = "reports no count" if counted is None else f"evaluated {counted} tokens"
    room = "a smaller window than that" if limit is None else f"a window of {limit} tokens"
    return Notice(
        "prompt_truncated",
        f"Ollama evidently cut the prompt: it has about {prompt} tokens, the server {saw} (num_ctx {wanted} was asked "
        f"for, it seems to run with {room}). The oldest messages were lost. Set max_tokens to the window that the "
        "model really has, so that the run shortens its history itself, or take a model with a larger one.",
    )
