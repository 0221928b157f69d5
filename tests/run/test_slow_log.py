"""A log that really waits, fails in odd ways, or stops answering: no gap in it, no run that hangs, no session lost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from doubles import Script, add, assert_paired, call, calls, done_of, events_of, only, runner_of, say

from deepstrike import ErrorEvent, InMemorySessionLog, RunFailed, SessionError
from deepstrike.kernel import Kernel
from deepstrike.providers.base import ToolCall


class SlowLog(InMemorySessionLog):
    """Waits before what it does; `raises` comes at the `nth` append instead."""

    def __init__(self, seconds: float = 0.002, *, nth: int = 0, raises: BaseException | None = None) -> None:
        super().__init__()
        self.seconds = seconds
        self.nth = nth
        self.raises = raises
        self.appending = asyncio.Event()
        self.appends = 0

    async def append(self, session_id: str, records: Sequence[bytes], expected_seq: int, *, owner: str) -> int:
        self.appends += 1
        self.appending.set()
        await asyncio.sleep(self.seconds)
        if self.raises is not None and self.appends == self.nth:
            raise self.raises
        return await super().append(session_id, records, expected_seq, owner=owner)

    async def latest_seq(self, session_id: str) -> int:
        await asyncio.sleep(self.seconds)
        return await super().latest_seq(session_id)

    async def release(self, session_id: str, owner: str) -> None:
        await asyncio.sleep(self.seconds)
        await super().release(session_id, owner)


def adding() -> Script:
    return Script(calls(*[ToolCall(f"c{n}", "add", '{"x":1,"y":2}') for n in range(3)]), say("3"))


async def require_usable(log: InMemorySessionLog) -> None:
    """The log folds, and a further goal in it finds every call answered."""
    records = await log.read("s")
    if records:
        Kernel.replay(records)
    after = Script(say("fine"))
    assert (await runner_of(after, add, log=log).run("next", session_id="s")).status == "completed"
    assert_paired(after.turns[0])


@pytest.mark.parametrize("cancels", [1, 2, 3])
@pytest.mark.parametrize("moment", range(0, 24, 3))
async def test_cancelling_again_and_again_leaves_no_gap(moment: int, cancels: int) -> None:
    log = SlowLog()
    task = asyncio.ensure_future(runner_of(adding(), add, log=log).run("go", session_id="s").result())
    await asyncio.sleep(moment / 1000)
    for _ in range(cancels):
        task.cancel()
        await asyncio.sleep(0.001)
    await asyncio.wait([task], timeout=20)
    assert task.done()
    await require_usable(log)


@pytest.mark.parametrize("moment", range(0, 24, 2))
def test_a_program_that_ends_during_an_append_ends(moment: int) -> None:
    log = SlowLog()

    async def main() -> None:
        asyncio.ensure_future(runner_of(adding(), add, log=log).run("go", session_id="s").result())  # noqa: RUF006
        await asyncio.sleep(moment / 1000)

    asyncio.run(main())
    asyncio.run(require_usable(log))


class Odd(BaseException):
    """Neither an Exception nor one of Python's own."""


@pytest.mark.parametrize("nth", range(1, 6))
@pytest.mark.parametrize("raises", [Odd("x"), GeneratorExit(), OSError("full"), asyncio.CancelledError()], ids=repr)
async def test_whatever_an_append_raises_nothing_follows_it(nth: int, raises: BaseException) -> None:
    log = SlowLog(0.0, nth=nth, raises=raises)
    run = asyncio.ensure_future(events_of(runner_of(adding(), add, log=log).run_streaming("go", session_id="s")))
    await asyncio.wait([run], timeout=20)
    assert run.done()
    if isinstance(raises, Odd | OSError):
        assert done_of(run.result()).status == "error"
        assert only(ErrorEvent, run.result())[0].code == "session_log"
    elif not run.cancelled():
        run.exception()
    await require_usable(log)


async def test_a_run_whose_release_is_cancelled_gives_the_session_back() -> None:
    log = SlowLog(0.005)
    task = asyncio.ensure_future(runner_of(Script(say("hi")), log=log).run("go", session_id="s").result())
    while log.appends < 2:
        await asyncio.sleep(0.001)
    for _ in range(12):
        await asyncio.sleep(0.001)
        task.cancel()
    await asyncio.wait([task], timeout=20)
    await require_usable(log)


async def test_a_log_that_stops_answering_is_left_when_the_caller_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deepstrike.host.session.LEAVE_SECONDS", 0.05)
    monkeypatch.setattr("deepstrike.drive.LEAVE_SECONDS", 0.05)
    log = SlowLog(3_600.0)
    task = asyncio.ensure_future(runner_of(Script(say("hi")), log=log).run("go", session_id="s").result())
    await log.appending.wait()
    task.cancel()
    await asyncio.wait([task], timeout=20)
    assert task.cancelled()


class SlowToAcquire(InMemorySessionLog):
    """Holds the session at once, and tells of it later."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds
        self.acquiring = asyncio.Event()

    async def acquire(self, session_id: str) -> str:
        owner = await super().acquire(session_id)
        self.acquiring.set()
        await asyncio.sleep(self.seconds)
        return owner


@pytest.mark.parametrize("patience", [5.0, 0.01])
async def test_a_run_that_is_cancelled_while_it_acquires_gives_the_session_back(
    monkeypatch: pytest.MonkeyPatch, patience: float
) -> None:
    monkeypatch.setattr("deepstrike.host.steady.LEAVE_SECONDS", patience)
    log = SlowToAcquire(0.1)
    task = asyncio.ensure_future(runner_of(Script(say("hi")), log=log).run("go", session_id="s").result())
    await log.acquiring.wait()
    task.cancel()
    await asyncio.wait([task], timeout=20)
    assert task.cancelled()
    log.seconds = 0.0
    for _ in range(200):
        if "s" not in log._owners:
            break
        await asyncio.sleep(0.01)
    assert (await runner_of(Script(say("fine")), log=log).run("next", session_id="s")).status == "completed"


async def test_a_session_that_is_held_too_late_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    for home in ("deepstrike.host.folding.LOG_SECONDS", "deepstrike.host.steady.LEAVE_SECONDS"):
        monkeypatch.setattr(home, 0.02)
    log = SlowToAcquire(0.2)
    with pytest.raises(SessionError, match="did not answer within"):
        await runner_of(Script(say("hi")), log=log).run("go", session_id="s")
    for _ in range(200):
        if "s" not in log._owners:
            break
        await asyncio.sleep(0.01)
    assert "s" not in log._owners


@pytest.mark.parametrize("appends", [0, 1, 2])
async def test_a_log_that_stops_answering_ends_the_run(monkeypatch: pytest.MonkeyPatch, appends: int) -> None:
    for home in ("deepstrike.host.session", "deepstrike.host.steady", "deepstrike.drive"):
        monkeypatch.setattr(f"{home}.LOG_SECONDS", 0.2)

    class Stuck(InMemorySessionLog):
        left = appends

        async def append(self, session_id: str, records: Sequence[bytes], expected_seq: int, *, owner: str) -> int:
            self.left -= 1
            if self.left < 0:
                await asyncio.sleep(3_600)
            return await super().append(session_id, records, expected_seq, owner=owner)

    events = await asyncio.wait_for(events_of(runner_of(adding(), add, log=Stuck()).run_streaming("go")), 20)
    assert only(ErrorEvent, events)[0].code == "session_log"
    assert done_of(events).status == "error"


async def test_a_log_that_cannot_be_opened_says_so() -> None:
    class Shut(InMemorySessionLog):
        async def acquire(self, session_id: str) -> str:
            raise PermissionError("not yours")

    with pytest.raises(Exception, match=r"session 's': the log failed: PermissionError: not yours"):
        await runner_of(Script(say("hi")), log=Shut()).run("go", session_id="s")


@pytest.mark.parametrize("counts", [(-1, 0), (2**63, 1), (10**30, 1)])
async def test_an_impossible_usage_is_estimated_instead(counts: tuple[int, int]) -> None:
    from deepstrike.providers.base import Finish
    from deepstrike.stream import TextDelta
    from deepstrike.wire.message import Usage

    script = Script([TextDelta("hi"), Usage(*counts), Finish("stop")])
    runner = runner_of(script)
    result = await runner.run("go", session_id="s")
    assert 0 < result.total_tokens < 1_000
    assert (await runner.run("again", session_id="s")).status == "completed"


async def test_a_failing_provider_always_has_words() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    for error in (Mute(), Odd("x"), GeneratorExit()):
        with pytest.raises(RunFailed, match=type(error).__name__):
            await asyncio.wait_for(runner_of(Script(error)).run("go").result(), 20)


async def test_two_awaiters_get_the_same_result() -> None:
    run = runner_of(adding(), add, log=SlowLog()).run("go")
    one, two = await asyncio.gather(run.result(), run.result())
    assert one is two


async def test_a_second_reader_is_refused_and_the_first_goes_on() -> None:
    run = runner_of(adding(), add, log=SlowLog()).run_streaming("go")
    stream = aiter(run)
    first = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="one reader"):
        await anext(stream)
    await first
    assert done_of([event async for event in stream]).status == "completed"


async def test_closing_from_another_task_ends_the_iteration_without_cancelling_it() -> None:
    async def wait() -> str:
        await asyncio.Event().wait()
        return "never"

    run = runner_of(Script(calls(call("wait"))), wait).run_streaming("go")
    reader = asyncio.ensure_future(events_of(run))
    await asyncio.sleep(0.01)
    await run.aclose()
    await asyncio.wait([reader], timeout=20)
    assert not reader.cancelled()
    assert reader.exception() is None
