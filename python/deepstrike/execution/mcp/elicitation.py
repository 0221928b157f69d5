"""A server asks the user in the middle of a call; that is an approval, given by a callback or by the run's caller."""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from deepstrike.execution.mcp.flight import MOST_QUESTIONS
from deepstrike.execution.mcp.words import plain
from deepstrike.kernel import validate
from deepstrike.tools.suspension import Misplaced
from deepstrike.tools.threads import run_in_thread

if TYPE_CHECKING:
    import asyncio

    from deepstrike.execution.mcp.flight import Flights

_log = logging.getLogger("deepstrike")

LONGEST_QUESTION: Final = 2048

Fields = Mapping[str, str | int | float | bool | list[str] | None]
Given = Fields | bool | None
OnElicitation = Callable[["Elicitation"], Given | Awaitable[Given]]


@dataclass(frozen=True, slots=True)
class Elicitation:
    """What a server asks. Its words are nobody's we trust: show them as the server's.

    `schema` is the JSON schema text of the fields that it wants (form mode); `url` is an address that the user should
    visit (URL mode, where `schema` is empty). `server` says which server asks.
    """

    server: str
    message: str
    schema: str = ""
    url: str = ""

    def payload(self) -> dict[str, object]:
        """The same for `ToolSuspendEvent.payload`, the schema read."""
        schema = json.loads(self.schema) if self.schema else None
        return {"server": self.server, "message": self.message, "schema": schema, "url": self.url}


class Misfit(ValueError):
    """The callback's answer does not fit what the server asked for."""


@dataclass(frozen=True, slots=True)
class Desk:
    """Answers a server's questions, one at a time, while the clock of the calls in flight stands still."""

    answer: OnElicitation | None
    flights: Flights
    turn: asyncio.Lock

    async def ask(self, question: Elicitation) -> Fields | None:
        """The fields to send back; None to decline. Raises what the callback raises, and `Misfit`.

        Without a callback the question is the call's own (`Suspend`): the run's caller answers it, now or later. The
        call is then closed, since no server waits so long, and made again when the answer is there.

        A server that asks too often is declined: its questions take a call's time and the user's.
        """
        if not self.flights.admit():
            self.flights.note(f"[The server asked more than {MOST_QUESTIONS} questions. The others were declined.]")
            return None
        async with self.turn:
            if self.answer is not None:
                given = await self.flights.apart(partial(_called, self.answer, question))
                return _fields(given, question)
            flight = self.flights.only()
            if flight is None:
                return self._decline(question, "several calls were under way, and it does not say which one it is for")
            try:
                answer = await self.flights.apart(partial(flight.suspend, question.payload()))
            except Misplaced:
                return self._decline(question, "nobody is there to answer")
        try:
            return _fields(answer, question)
        except Misfit as misfit:
            return self._decline(question, str(misfit))

    def _decline(self, question: Elicitation, why: str) -> Fields | None:
        """None, which declines; the model reads why."""
        self.flights.note(f"[The server asked the user: {question.message!r}. It was declined, because {why}.]")
        return None


async def _called(answer: OnElicitation, question: Elicitation) -> Given:
    """Awaits an async callback; runs a sync one, which may well wait for a keyboard, in a thread."""
    if inspect.iscoroutinefunction(answer):
        given: Given | Awaitable[Given] = answer(question)
    else:
        given = await run_in_thread(lambda: answer(question))
    return await given if isinstance(given, Awaitable) else given


def _fields(given: object, question: Elicitation) -> Fields | None:
    if given is None or given is False:
        return None
    fields = {} if given is True else given
    if not isinstance(fields, Mapping):
        raise Misfit(f"the answer must be a mapping of fields, True or None, not {type(fields).__name__}")
    complaints = validate(question.schema, json.dumps(dict(fields))) if question.schema else []
    if complaints:
        raise Misfit(f"the answer does not fit the server's schema: {complaints[0]}")
    return fields


def question(server: str, message: str, schema: Mapping[str, object] | None, url: str) -> Elicitation:
    """The question with the server's words made plain; in the schema, hidden characters show as escapes."""
    text = "" if schema is None else json.dumps(schema)
    return Elicitation(server, plain(message, LONGEST_QUESTION), text, plain(url, LONGEST_QUESTION))
