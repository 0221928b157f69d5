"""From sessions that are over to memories: each session once, by one model call and one commit."""

from __future__ import annotations

import logging
import secrets
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from deepstrike.dream.alone import alone
from deepstrike.dream.asking import answer, request
from deepstrike.dream.insights import parsed
from deepstrike.dream.marks import dreamed
from deepstrike.dream.provenance import Turns
from deepstrike.dream.purse import Purse, Spent
from deepstrike.dream.storing import keep, memories, undreamed
from deepstrike.errors import CircuitOpen, ProviderError, QuotaExhausted, Unauthorized, Unreachable
from deepstrike.host.steady import NoAnswer, told, within
from deepstrike.memory.base import Dreamed
from deepstrike.memory.claims import folded
from deepstrike.memory.curation import curate, is_current, observed
from deepstrike.memory.messages import words_of
from deepstrike.tools.threads import run_in_thread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepstrike.clock import Clock
    from deepstrike.dream.insights import Insight
    from deepstrike.memory.base import CurationResult, DreamStore, MemoryEntry, SessionData
    from deepstrike.providers.base import LLMProvider, ModelInfo, ModelRequest
    from deepstrike.wire.policy import Limits

CALL_SECONDS: Final = 600.0
"""How long one model call may take where no `timeout_ms` says otherwise."""
_FOR_ALL: Final = (Unauthorized, QuotaExhausted, CircuitOpen, Unreachable, Spent)
"""What would be the same with the next session."""
_log = logging.getLogger("deepstrike")


@dataclass(frozen=True, slots=True)
class DreamFailure:
    """A session that could not be read; it waits for the next dream. `code` and `retryable` are as in `ErrorEvent`."""

    session_id: str
    message: str
    code: str
    retryable: bool


@dataclass(frozen=True, slots=True)
class DreamResult:
    """What a dream has come to.

    `entries_added` counts texts that were not remembered before, `entries_removed` those that were so and are no longer
    (superseded ones are kept, with their end). `failures` are the sessions that were left for the next time.
    """

    sessions_processed: int = 0
    insights_extracted: int = 0
    entries_added: int = 0
    entries_removed: int = 0
    failures: tuple[DreamFailure, ...] = ()


@dataclass(frozen=True, slots=True)
class Dreamer:
    """Who is asked, and with what."""

    provider: LLMProvider
    extensions: Mapping[str, object]
    limits: Limits
    model: ModelInfo
    clock: Clock


async def dream(store: DreamStore, agent_id: str, dreamer: Dreamer, now_ms: int) -> DreamResult:
    """Draw what is worth remembering from every session of the agent that was not dreamed of yet.

    One after the other: one model call, one commit, the session marked. So whenever this ends, by a crash or a
    cancellation too, each session counts in full or not at all, and the next dream goes on. A second dream of the agent
    in this process waits for the first. A session whose call fails, or is answered in no form that can be read, stays
    as it is; what would fail for every session ends the dream. All calls together spend what the limits let one goal.

    Raises `DeepStrikeError` with code `dream_store` where the store fails, or what the store raises of ours.
    """
    total = _Total()
    purse = Purse(dreamer.limits, dreamer.model.price, dreamer.model.id)
    name = secrets.token_hex(8)
    async with alone(store, agent_id):
        for session in await undreamed(store, agent_id):
            try:
                insights = await _insights(session, dreamer, purse)
            except _Unread as unread:
                total.failures.append(unread.failure)
                _log.warning("session %r waits for the next dream: %s", session.session_id, unread.failure.message)
                if unread.ends_all:
                    break
                continue
            existing = await memories(store, agent_id) if insights else []
            result = curate(existing, insights)
            after = dreamed(session, now_ms)
            if await keep(store, agent_id, Dreamed(name, now_ms, session, after, result, existing)):
                total.count(result, existing, len(insights))
    return total.result()


class _Unread(Exception):
    """A session could not be read. `ends_all`: neither could the next."""

    def __init__(self, session: SessionData, error: Exception, message: str, *, code: str = "provider_error") -> None:
        super().__init__(message)
        retryable = isinstance(error, NoAnswer)
        if isinstance(error, ProviderError):
            code, retryable = error.code, error.retryable
        self.failure = DreamFailure(session.session_id, message, code, retryable)
        self.ends_all = isinstance(error, _FOR_ALL)


async def _insights(session: SessionData, dreamer: Dreamer, purse: Purse) -> list[MemoryEntry]:
    """What the model draws from a session, as `curate` takes it. Raises `_Unread`."""
    if not any(words_of(message).strip() for message in session.messages):
        return []
    found = parsed(await _answer(session, dreamer, purse))
    if found is None:
        wanted = 'the answer is not of the form {"insights": [{"text", "confidence"}]}'
        raise _Unread(session, ValueError(), wanted, code="bad_answer")
    return await run_in_thread(partial(_observed, session, found))


async def _answer(session: SessionData, dreamer: Dreamer, purse: Purse) -> str:
    limits = dreamer.limits
    limit = CALL_SECONDS if limits.timeout_ms is None else limits.timeout_ms / 1000
    try:
        # In a thread, as what follows the answer: a long session takes a while to go through.
        asked = await run_in_thread(partial(_asked, session, dreamer, purse))
        return await within(limit, answer(dreamer.provider, asked, purse), dreamer.clock)
    except NoAnswer as error:
        raise _Unread(session, error, f"the model did not answer within {limit:g} s", code="timeout") from None
    except ProviderError as error:
        raise _Unread(session, error, error.message) from error
    except Exception as error:
        raise _Unread(session, error, told(error)) from error


def _asked(session: SessionData, dreamer: Dreamer, purse: Purse) -> ModelRequest:
    return purse.admit(request(session, dreamer.extensions, dreamer.limits, dreamer.model.id))


def _observed(session: SessionData, insights: Sequence[Insight]) -> list[MemoryEntry]:
    turns = Turns(session.messages)
    entries: list[MemoryEntry] = []
    for insight in insights:
        origin = turns.origin(insight.text)
        entries.append(
            observed(
                insight.text,
                session_id=session.session_id,
                record=origin.record,
                # A session that goes on for long tells old things too: they stay as old as they are.
                at_ms=session.updated_at_ms if origin.at_ms is None else origin.at_ms,
                source=origin.source,
                confidence=insight.confidence,
                trusted=origin.trusted,
            )
        )
    return entries


@dataclass(slots=True)
class _Total:
    """What has been counted so far."""

    sessions: int = 0
    insights: int = 0
    added: int = 0
    removed: int = 0
    failures: list[DreamFailure] = field(default_factory=list)

    def count(self, result: CurationResult, existing: Sequence[MemoryEntry], insights: int) -> None:
        was = {folded(existing[at].text) for at in result.to_remove_indices if is_current(existing[at])}
        self.sessions += 1
        self.insights += insights
        self.added += result.stats.entries_added
        self.removed += len(was - {folded(entry.text) for entry in result.to_add if is_current(entry)})

    def result(self) -> DreamResult:
        return DreamResult(self.sessions, self.insights, self.added, self.removed, tuple(self.failures))
