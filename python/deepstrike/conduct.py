"""One goal, begun or taken up again, to its result: opens the session, drives it, gives it back."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from deepstrike.clock import current_clock
from deepstrike.drive import Drive
from deepstrike.errors import DeepStrikeError, SessionError
from deepstrike.host.agents import Household, path_of
from deepstrike.host.folding import unknown
from deepstrike.host.lineage import require_own
from deepstrike.host.meta import MetaPlane
from deepstrike.host.outcome import result_of
from deepstrike.host.oversight import Oversight
from deepstrike.host.remember import remember
from deepstrike.host.requests import open_requests, requests_of, resolve
from deepstrike.host.session import HostFailed, JournalFailed, Session
from deepstrike.host.steady import told
from deepstrike.output.shape import Misfit
from deepstrike.secrets import bound
from deepstrike.stream import DoneEvent, ErrorEvent, NoticeEvent, RunResult, UsageEvent
from deepstrike.wire.effect import AskUser
from deepstrike.wire.input import Answer, Resume, Value

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from deepstrike.governance.policy import Governance
    from deepstrike.host.agents import Child
    from deepstrike.host.approval import Validate
    from deepstrike.host.crew import Means
    from deepstrike.host.library import Library
    from deepstrike.host.outbox import Outbox
    from deepstrike.host.post import Post
    from deepstrike.host.recent import Recent
    from deepstrike.host.requests import Given
    from deepstrike.output.form import Form
    from deepstrike.sessions.base import SessionLog
    from deepstrike.wire.effect import Outcome
    from deepstrike.wire.input import Start
    from deepstrike.wire.message import Notice
    from deepstrike.wire.policy import Attended

_log = logging.getLogger("deepstrike")


@dataclass(frozen=True, slots=True)
class Task:
    """What a run is about, fixed before it begins.

    `perform` carries out its sub-agents where an interrupt finds them.
    """

    session_id: str
    first: Start | Resume
    answers: Mapping[str, Given]
    log: SessionLog
    recent: Recent
    means: Means
    library: Library
    post: Post
    governance: Governance | None = None
    form: Form | None = None
    perform: Callable[[Child, Outbox], Awaitable[RunResult]] | None = None
    notices: tuple[Notice, ...] = ()


class Conduct:
    """A run in progress. `perform` once; `interrupt` from anywhere."""

    __slots__ = ("_drive", "_interrupted", "_prepare", "_task", "result", "session_id")

    def __init__(self, session_id: str, prepare: Callable[[], Awaitable[Task]]) -> None:
        """`prepare` gives the task when the run begins."""
        self.session_id = session_id
        self._prepare = prepare
        self._task: Task
        self._drive: Drive | None = None
        self._interrupted: str | None = None
        self.result: RunResult | None = None

    def interrupt(self, reason: str) -> None:
        """End the run `user_abort`, from any thread."""
        self._interrupted = reason
        if self._drive is not None:
            self._drive.interrupt(reason)

    async def perform(self, outbox: Outbox) -> RunResult:
        """Pursue the goal; the result is also kept in `result`, even when this is cancelled on the way.

        Raises what opening the session raises; a plane that cannot be opened is a run that failed. The session is
        remembered and given back before the `DoneEvent` goes out.
        """
        clock = current_clock()
        try:
            task = self._task = await self._prepare()
        except SessionError:
            raise
        except Exception as error:
            return self._unbegun(error, outbox)
        await require_own(task.session_id, task.log, task.first.config.agents.parent)
        oversight = Oversight(task.governance)
        session = await Session.open(task.session_id, task.log, task.recent, clock, task.first.config, oversight)
        for notice in task.notices:
            outbox.put(NoticeEvent(notice.code, notice.message))
        try:
            self.result = self._result(await self._outcome(session, outbox))
            await session.rest(task.recent)
        except (JournalFailed, HostFailed) as error:
            self.result = self._lost(session, error)
            outbox.put(ErrorEvent(bound().hidden(error.message), error.code, error.retryable))
        except asyncio.CancelledError:
            outcome = session.abandon()
            self.result = None if outcome is None else self._result(outcome)
            raise
        finally:
            try:
                await self._remember(session)
            finally:
                await session.close()
        outbox.put(_done(self.result))
        return self.result

    async def _outcome(self, session: Session, outbox: Outbox) -> Outcome:
        task = self._task
        means = _means(task, session)
        answers: list[Answer] = []
        if isinstance(task.first, Resume):
            if session.kernel.phase == "idle":
                raise unknown(task.session_id)
            validate = session.secrecy.validating(means.plane.validate)
            answers = self._answers(session, task.first, validate)
            standing = session.kernel.outcome()
            if standing is not None and not answers and _stays(standing, task.first):
                return standing
        mail = await task.post.open(task.session_id)
        try:
            self._drive = drive = Drive(session, means, outbox, session.clock, mail)
            if self._interrupted is not None:
                drive.interrupt(self._interrupted)
            return await drive.run(session.oversight.first(task.first), *answers)
        finally:
            await task.post.close(mail)

    def _answers(self, session: Session, resume: Resume, validate: Validate) -> list[Answer]:
        """What was given, and for sub-agents whose questions somebody here answers now: that they go on."""
        task, owed = self._task, session.kernel.pending()
        given = task.answers
        if session.path:
            # A sub-agent hears of all that its parent was ever given for it; what it took before is not open any more.
            open_now = {request.request_id for request in open_requests(owed, session.path)}
            given = {key: answer for key, answer in given.items() if key in open_now}
        answers = resolve(owed, given, validate, session.path)
        answered = {answer.effect for answer in answers}
        attended = resume.config.attended
        asked = (ask for ask in owed if isinstance(ask, AskUser) and ask.kind == "agent" and ask.id not in answered)
        heard = [Answer(ask.id, Value("{}")) for ask in asked if _is_attended(ask, attended)]
        return [*answers, *heard]

    async def _remember(self, session: Session) -> None:
        """Keep what was pursued here and has ended; a goal that waits is kept when it goes on and ends."""
        if session.path or self._drive is None or self.result is None:
            return  # the goal of a sub-agent is a model's word, not the user's
        if self.result.status != "suspended":
            await remember(session, self._task.library, self.result.status)

    def _unbegun(self, error: Exception, outbox: Outbox) -> RunResult:
        """The tools of a plane could not be had."""
        if not isinstance(error, DeepStrikeError):
            error = DeepStrikeError(f"the execution plane could not be opened: {told(error)}", code="plane")
        why = bound().hidden(error.message)
        message = f"{why}; the goal was not begun and nothing is recorded: run it again when that is mended"
        code, retryable = error.code, error.retryable
        usage = UsageEvent(0, 0)
        self.result = RunResult("", None, "error", (), 0, usage, 0, self.session_id, message, code, retryable)
        outbox.put(ErrorEvent(message, code, retryable))
        outbox.put(_done(self.result))
        return self.result

    def _lost(self, session: Session, error: DeepStrikeError) -> RunResult:
        """The log is behind the kernel: the counters are the kernel's, the status is the failure's."""
        outcome = session.abandon()
        if outcome is None:
            raise error  # not even the goal was taken
        found = self._result(outcome)
        return replace(found, status="error", error=error.message, code=error.code, retryable=error.retryable)

    def _output(self, outcome: Outcome) -> object | None:
        """The answer in its form, read from the recorded text: the same whether the goal ends now or ended before."""
        form = self._task.form
        if form is None or outcome.status != "completed":
            return None
        try:
            return form.value(outcome.text)
        except Misfit as misfit:
            # Only of a goal that was completed under another output_type.
            _log.warning("session %r: its answer is not of this output_type: %s", self._task.session_id, misfit)
            return None

    def _result(self, outcome: Outcome) -> RunResult:
        path = path_of(self._task.first.config)
        return result_of(self._task.session_id, outcome, self._output(outcome), path)


def _means(task: Task, session: Session) -> Means:
    means = task.means
    perform = task.perform or _perform
    household = Household(task.first.config, task.log, task.governance, means, task.recent.vault, perform)
    return replace(means, plane=MetaPlane(means.plane, session, task.library, means.delegates), household=household)


async def _perform(child: Child, outbox: Outbox) -> RunResult:
    return await child.perform(outbox)


def _stays(standing: Outcome, resume: Resume) -> bool:
    """Whether going on would change nothing: the goal is completed, or waits for answers that nobody here gives."""
    if standing.status != "suspended":
        return standing.status == "completed"
    return not any(_is_attended(ask, resume.config.attended) for ask in standing.pending)


def _is_attended(ask: AskUser, attended: Attended) -> bool:
    """Whether somebody here answers it, or one of the questions that a sub-agent waits with."""
    return any(
        attended.suspensions if request.kind == "suspension" else attended.approvals for request in requests_of(ask)
    )


def _done(result: RunResult) -> DoneEvent:
    return DoneEvent(
        result.iterations,
        result.total_tokens,
        result.status,
        result.usage,
        result.session_id,
        result.output,
        result.pending or None,
    )
