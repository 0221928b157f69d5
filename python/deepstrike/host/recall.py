"""`recall(ref, offset)`: what left the prompt, read from the session's log and its blobs, in parts."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from deepstrike.errors import DeepStrikeError
from deepstrike.host.transcript import attachments, transcript
from deepstrike.kernel import count
from deepstrike.sessions.blob import is_ref, shelf_of
from deepstrike.text import well_formed
from deepstrike.tools.failures import failure
from deepstrike.wire.message import Image, Text, ToolResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepstrike.execution.base import Invocation
    from deepstrike.host.library import Library
    from deepstrike.host.session import Session
    from deepstrike.wire.message import Part

# Characters of one part, where the share of the window allows them.
_PART = 16_000
# Images and files may fill so much of the window; an image weighs as the kernel weighs it.
_MOST_ATTACHED = 2
_IMAGE = 1_600
_RECORDS = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")


class _NotThere(ValueError):
    """The reference names nothing of this session; the message is for the model."""


async def recall(session: Session, _: Library, invocation: Invocation) -> ToolResult:
    """The part of what `ref` names that begins at `offset`, in characters, never more than a result's share.

    A ref is the seq of a record (`"12"`), a span of them (`"3-88"`), or the name of a blob that a record of this
    session names. The images and files of one record come with the first part of it. Whatever is wrong with it is an
    error result. Raises nothing but `CancelledError`.
    """
    wanted = json.loads(invocation.args_text)
    ref, offset = wanted["ref"].strip(), int(wanted.get("offset", 0))
    try:
        text = await _whole(session, ref)
        attached = await _attached(session, ref) if offset == 0 else ()
    except _NotThere as error:
        return failure("tool_error", str(error))
    except DeepStrikeError as error:
        return failure("tool_error", f"{ref!r} could not be read: {error.message}")
    if offset >= len(text) > 0:
        return failure("tool_error", f"{ref!r} has {len(text)} characters; offset {offset} is beyond its end")
    return ToolResult((Text(_part(session, ref, text, offset)), *attached))


async def _whole(session: Session, ref: str) -> str:
    records = await session.records()
    span = _RECORDS.fullmatch(ref)
    if span is not None:
        first, last = int(span[1]), int(span[2] or span[1])
        if not first <= last < len(records):
            raise _NotThere(f"there is no record {ref!r}; the records of this session are 0-{len(records) - 1}")
        size = sum(map(len, records[first : last + 1]))
        return await session.off_loop(size, transcript, records, first, last)
    if not _names(records, ref):
        raise _NotThere(f"nothing here is called {ref!r}; use a ref as it stands where something was left out")
    return well_formed((await session.blob(ref)).decode("utf-8", "replace"))


async def _attached(session: Session, ref: str) -> Sequence[Part]:
    """The images and files of the record `ref`, as many as have room; of the others a word that says so."""
    if not ref.isdigit():
        return ()
    record = (await session.records())[int(ref)]
    room = session.limits.window // _MOST_ATTACHED
    parts: list[Part] = []
    for part in attachments(record):
        tokens = _IMAGE if isinstance(part, Image) else len(part.data) // 3
        room -= tokens
        parts.append(part if room >= 0 else Text(f"[one of {tokens} tokens has no room in this context window]"))
    return parts


def _names(records: Sequence[bytes], ref: str) -> bool:
    """Whether a result of this session has that blob: those of other sessions are nobody's business here."""
    mark = f'"ref":{json.dumps(ref)}'.encode()
    return any(mark in line for line in records)


def _part(session: Session, ref: str, text: str, offset: int) -> str:
    # The line below is no longer than with the largest numbers it can have; a token more for where the two meet.
    weighed, more = _weighed(ref)
    line = count(_reading_on(weighed, len(text), len(text), len(text)), session.model) + more
    room = max(1, session.result_share - line - 1)
    size = _PART
    part = text[offset : offset + size]
    while size > 1 and (tokens := count(part, session.model)) > room:
        size = max(1, min(size, len(part)) * room // (tokens + 1))
        part = text[offset : offset + size]
    end = offset + len(part)
    if end >= len(text):
        return part or "(empty)"
    return part + _reading_on(ref, offset, end, len(text))


def _weighed(ref: str) -> tuple[str, int]:
    """What of `ref` is counted, and the most tokens that the rest can be.

    A blob's reference begins with the session's digest: were it counted, the same text would be cut elsewhere in
    another session, which would be no replay of this one.
    """
    if not is_ref(ref):
        return ref, 0
    shelf = shelf_of(ref)
    return ref[len(shelf) :], len(shelf) + 1


def _reading_on(ref: str, offset: int, end: int, whole: int) -> str:
    return f"\n[{offset} to {end} of {whole} characters; recall({json.dumps(ref)}, {end}) reads on]"
