"""What a gateway with a store has taken outlives the process, and comes once."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from deepstrike import (
    ConfigError,
    DeepStrikeError,
    RuntimeOptions,
    RuntimeRunner,
    RuntimeSignal,
    ScheduledPrompt,
    ScriptedProvider,
    SignalGateway,
    secrets,
)
from deepstrike.secrets import HIDDEN, Bound, binding
from deepstrike.signals.queue import Address
from deepstrike.testing import ManualClock

START = 1_700_000_000_000
MAIL = RuntimeSignal("mail", {"from": "änn"}, "post", "letter", "high", "k", "s")


def lived(folder: Path, die_at: str) -> tuple[int, list[object]]:
    """How a process ended, and what it said."""
    command = [sys.executable, str(Path(__file__).with_name("mortal.py")), str(folder), die_at]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


async def test_given_signals_in_a_store_when_another_process_opens_it_then_they_come_as_they_were(
    tmp_path: Path,
) -> None:
    before = SignalGateway(tmp_path / "signals.db")
    sent = [RuntimeSignal("tick"), MAIL, RuntimeSignal("fire", urgency="critical")]
    for each in sent:
        before.ingest(each)
    before.destroy()

    after = SignalGateway(tmp_path / "signals.db")
    assert after.ingest(MAIL) is False
    assert [await after.next_signal() for _ in sent] == list(reversed(sent))
    after.destroy()

    assert len(SignalGateway(tmp_path / "signals.db").queue) == 0


async def test_given_many_urgent_signals_in_a_store_when_opened_again_then_none_is_missing(tmp_path: Path) -> None:
    before = SignalGateway(tmp_path / "signals.db", capacity=1_000)
    for number in range(1_500):
        before.ingest(RuntimeSignal("fire", {"number": number}, urgency="critical"))
    before.destroy()

    after = SignalGateway(tmp_path / "signals.db", capacity=1_000)
    taken = [await after.next_signal() for _ in range(len(after.queue))]
    after.destroy()

    assert [each.payload["number"] for each in taken if each is not None] == list(range(1_500))


def test_given_what_a_run_had_in_its_hands_when_the_process_ends_then_its_session_gets_it_and_no_stop(
    tmp_path: Path,
) -> None:
    before = SignalGateway(tmp_path / "signals.db")
    before.ingest(RuntimeSignal("mail"))
    before.ingest(RuntimeSignal("interrupt", urgency="critical"))
    for _ in range(2):
        entry = before.queue.take(None)
        assert entry is not None
        before.queue.assign(entry, ["s", "t"])
    before.destroy()

    after = SignalGateway(tmp_path / "signals.db").queue
    assert len(after) == 2
    assert after.take([Address(None, False)]) is None
    found = [after.take([Address(session, False)]) for session in ("s", "t")]
    assert [entry.signal.kind for entry in found if entry is not None] == ["mail", "mail"]
    assert len({entry.id for entry in found if entry is not None}) == 1


async def test_given_a_prompt_that_came_when_opened_and_scheduled_again_then_it_does_not_come_again(
    tmp_path: Path,
) -> None:
    prompt = ScheduledPrompt("standup", START + 1_000)
    with ManualClock(START) as clock:
        for expected in (["standup"], []):
            gateway = SignalGateway(tmp_path / "signals.db")
            gateway.schedule(prompt)
            await clock.advance(5)
            found = []
            while (entry := gateway.queue.take(None)) is not None:
                gateway.queue.delivered([entry])
                found.append(entry.signal.payload["goal"])
            gateway.destroy()
            assert found == expected


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> str:
    """A value that is bound in this test."""
    monkeypatch.setattr(binding, "_values", frozenset())
    monkeypatch.setattr(binding, "_bound", Bound())
    secrets.bind("hunter2-hunter2")
    return "hunter2-hunter2"


async def test_given_a_bound_secret_in_a_payload_when_kept_then_the_file_does_not_hold_it(
    tmp_path: Path, secret: str
) -> None:
    gateway = SignalGateway(tmp_path / "signals.db")
    gateway.ingest(RuntimeSignal("mail", {"text": f"it is {secret}"}))
    gateway.destroy()

    assert not any(b"hunter2" in path.read_bytes() for path in tmp_path.iterdir())
    (again,) = [await SignalGateway(tmp_path / "signals.db").next_signal()]
    assert again == RuntimeSignal("mail", {"text": f"it is {HIDDEN}"})


def test_given_a_bound_secret_in_a_goal_and_a_key_when_kept_then_the_file_has_neither_and_both_are_known(
    tmp_path: Path, secret: str
) -> None:
    prompt = ScheduledPrompt(f"log in with {secret}", cron="0 9 * * *")
    before = SignalGateway(tmp_path / "signals.db")
    name = before.schedule(prompt)
    before.ingest(RuntimeSignal("mail", dedupe_key=secret))
    before.destroy()

    assert not any(b"hunter2" in path.read_bytes() for path in tmp_path.iterdir())
    after = SignalGateway(tmp_path / "signals.db")
    (masked,) = after.scheduled()
    assert masked.goal == f"log in with {HIDDEN}"
    assert [after.schedule(prompt), after.schedule(masked)] == [name, name]
    assert after.ingest(RuntimeSignal("mail", dedupe_key=secret)) is False
    assert [after.cancel(masked), after.cancel(prompt), after.scheduled()] == [True, False, ()]
    after.destroy()


async def test_given_a_masked_prompt_when_it_is_due_then_it_comes_once_over_restarts(
    tmp_path: Path, secret: str
) -> None:
    prompt = ScheduledPrompt(f"log in with {secret}", START + 1_000)
    with ManualClock(START) as clock:
        before = SignalGateway(tmp_path / "signals.db")
        before.schedule(prompt)
        before.destroy()
        came = []
        for _ in range(2):
            gateway = SignalGateway(tmp_path / "signals.db")
            gateway.schedule(prompt)
            await clock.advance(5)
            while (entry := gateway.queue.take(None)) is not None:
                gateway.queue.delivered([entry])
                came.append(entry.signal.payload["goal"])
            gateway.destroy()

    assert came == [f"log in with {HIDDEN}"]


def test_given_a_link_to_a_store_that_is_served_when_another_gateway_would_then_it_is_refused(tmp_path: Path) -> None:
    first = SignalGateway(tmp_path / "signals.db")
    (tmp_path / "other.db").symlink_to("signals.db")

    with pytest.raises(DeepStrikeError, match="is served by another SignalGateway"):
        SignalGateway(tmp_path / "other.db")
    first.destroy()


def test_given_a_store_that_cannot_be_read_when_a_gateway_is_refused_then_it_does_not_serve_it(tmp_path: Path) -> None:
    path = tmp_path / "signals.db"
    SignalGateway(path).destroy()
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("ALTER TABLE over RENAME TO elsewhere")

    for _ in range(2):
        with pytest.raises(DeepStrikeError) as error:
            SignalGateway(path)
        assert error.value.code == "store_io"


def test_given_a_store_that_is_served_when_another_gateway_would_then_it_is_refused_until_the_first_is_gone(
    tmp_path: Path,
) -> None:
    first = SignalGateway(tmp_path / "signals.db")
    first.ingest(RuntimeSignal("mail"))
    build = "import sys; from deepstrike import SignalGateway; SignalGateway(sys.argv[1])"
    command = [sys.executable, "-c", build, str(tmp_path / "signals.db")]

    with pytest.raises(DeepStrikeError, match="is served by another SignalGateway") as error:
        SignalGateway(tmp_path / "signals.db")
    refused = subprocess.run(command, capture_output=True, text=True, timeout=60)
    first.destroy()
    taken = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert (error.value.code, error.value.retryable) == ("store_busy", True)
    assert "is served by another SignalGateway" in refused.stderr
    assert (taken.returncode, taken.stderr) == (0, "")


@pytest.mark.parametrize("kept", [False, True])
async def test_given_keys_with_lone_surrogates_when_a_run_hears_them_then_it_ends_and_they_stay_two(
    kept: bool, tmp_path: Path
) -> None:
    gateway = SignalGateway(tmp_path / "signals.db" if kept else None)
    taken = [gateway.ingest(RuntimeSignal("mail", dedupe_key=key)) for key in ("a\ud800", "a\ud801", "a\ud800")]

    ended = await RuntimeRunner(RuntimeOptions(provider=ScriptedProvider(["Ok."]), signal_source=gateway)).run("Go.")
    gateway.destroy()

    assert (taken, ended.status, len(gateway.queue)) == ([True, True, False], "completed", 0)


def test_given_a_path_that_is_no_store_when_built_then_the_error_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a folder: a store of signals needs a file"):
        SignalGateway(tmp_path)


@pytest.mark.parametrize("die_at", ["taken", "logged", "shown"])
def test_given_kill_9_between_taken_and_shown_when_resumed_then_the_model_reads_the_signal_once(
    die_at: str, tmp_path: Path
) -> None:
    gateway = SignalGateway(tmp_path / "signals.db")
    gateway.ingest(RuntimeSignal("mail"))
    gateway.destroy()

    code, _ = lived(tmp_path, die_at)
    again, said = lived(tmp_path, "never")

    assert (code, again) == (-signal.SIGKILL, 0)
    [*asked, left] = said
    text = "Signal mail (event, from custom, normal): {}"
    assert [texts.count(text) for texts in asked if isinstance(texts, list)] == [1]
    assert left == 0
