"""The key is nowhere but on the wire, also when the service sends it back."""

from __future__ import annotations

import logging
import traceback
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from deepstrike.testing.provider_conformance.hearing import hear
from deepstrike.testing.provider_conformance.trial import KEY, SOON
from deepstrike.testing.renderers.base import Spoken
from deepstrike.testing.server import Raw
from deepstrike.testing.trying import same

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepstrike.testing.provider_conformance.hearing import Heard
    from deepstrike.testing.provider_conformance.trial import Bench, Body

_ECHO = f"Incorrect API key provided: {KEY}, sent as Bearer {KEY}"
_HTML = {"content-type": "text/html"}


async def the_key_is_sent(bench: Bench) -> None:
    """In a header: else these checks would show nothing."""
    async with bench.trial() as trial:
        await hear(trial.provider)
        sent = trial.server.requests[0]
        same(any(KEY in value for value in sent.headers.values()), True, "the key stands in a header")
        same(KEY.encode() in sent.raw, False, "the key stands in the body")


async def a_key_that_comes_back_is_told_to_nobody(bench: Bench) -> None:
    """In an error answer, on an error page, in the answer's headers, inside a stream: not in events, errors or logs."""
    for what, answer in _echoes(bench).items():
        async with bench.trial(*[answer] * 3, retry=SOON) as trial:
            with _all_logs() as lines:
                heard = await hear(trial.provider)
            same(heard.fault is None, False, f"{what} is a failure")
            found = [place for place, text in _places(heard, repr(trial.provider), lines) if KEY in text]
            same(found, [], f"{what}: where the key stands")


def _echoes(bench: Bench) -> dict[str, Raw]:
    opening = bench.renderer.answer(Spoken("some words")).opening
    refused, failing = bench.refusal("unauthorized", _ECHO), bench.refusal("failing", _ECHO)
    page = Raw([f"<html>{_ECHO}</html>".encode()], headers=_HTML)
    named = {"an error answer": refused, "a failure": failing, "a page instead of an answer": page}
    named["an error page"] = replace(page, status=502)
    named["an error inside a stream"] = bench.raw(*opening, bench.renderer.failure(_ECHO))
    named["a broken event"] = bench.raw(f"data: {{ {_ECHO}\n\n".encode())
    found = {what: answer for what, answer in named.items() if answer is not None}
    return {what: replace(it, headers={**it.headers, "x-request-id": KEY}) for what, it in found.items()}


def _places(heard: Heard, shown: str, lines: list[str]) -> Iterator[tuple[str, str]]:
    yield "repr of the provider", shown
    yield "events", repr(heard.events)
    yield "logs", "\n".join(lines)
    if heard.fault is not None:
        yield "error", f"{heard.fault} {heard.fault!r} {vars(heard.fault)!r}"
        yield "traceback", "".join(traceback.format_exception(heard.fault))


class _Listener(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__(logging.DEBUG)
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(f"{record.name}: {record.getMessage()} {record.args!r}")


@contextmanager
def _all_logs() -> Iterator[list[str]]:
    """What is logged meanwhile, by anybody, at any level."""
    root, lines = logging.getLogger(), list[str]()
    listener, level = _Listener(lines), root.level
    root.addHandler(listener)
    root.setLevel(logging.DEBUG)
    try:
        yield lines
    finally:
        root.removeHandler(listener)
        root.setLevel(level)


CHECKS: tuple[Body, ...] = (the_key_is_sent, a_key_that_comes_back_is_told_to_nobody)
