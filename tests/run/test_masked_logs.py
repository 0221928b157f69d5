"""What deepstrike logs is masked: bound values, and what has the shape or the name of a secret."""

from __future__ import annotations

import json
import logging

import pytest
from doubles import Script, call, calls, runner_of, say

from deepstrike import InMemorySessionLog, secrets
from deepstrike.secrets import Bound, binding
from deepstrike.secrets.logs import LOGGERS
from deepstrike.secrets.shapes import masked

KEY = "hunter2-hunter2"
SHAPED = "sk-proj-0123456789abcdefghijABCDEFGHIJ"


@pytest.fixture(autouse=True)
def one_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else is bound."""
    monkeypatch.setattr(binding, "_values", frozenset())
    monkeypatch.setattr(binding, "_bound", Bound())
    secrets.bind(KEY)


@pytest.mark.parametrize("name", LOGGERS)
def test_given_a_secret_in_a_message_or_a_traceback_when_logged_then_nothing_of_it_is_left(
    caplog: pytest.LogCaptureFixture, name: str
) -> None:
    logger = logging.getLogger(name)
    with caplog.at_level(logging.DEBUG):
        logger.warning("keys %s and %r", KEY, {"key": SHAPED})
        try:
            raise ValueError(f"bad key {KEY}")
        except ValueError:
            logger.exception("it failed with %d%%", 5)
        logger.info("nothing to hide in %s", "sk-ill")
    assert [record.getMessage() for record in caplog.records] == [
        "keys [secret] and {'key': '***'}",
        "it failed with 5%",
        "nothing to hide in sk-ill",
    ]
    assert "ValueError: bad key [secret]" in caplog.text
    assert KEY not in caplog.text
    assert caplog.records[2].args == ("sk-ill",)


def test_given_a_message_that_does_not_fit_its_arguments_when_logged_then_it_is_left_for_logging_to_report() -> None:
    record = logging.LogRecord("deepstrike", logging.WARNING, "x.py", 1, "%d", ("no number",), None)
    assert logging.getLogger("deepstrike").filter(record)
    assert (record.msg, record.args) == ("%d", ("no number",))


async def test_given_a_log_that_fails_over_a_secret_when_a_run_warns_then_its_words_are_masked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Loud(InMemorySessionLog):
        async def put_blob(self, session_id: str, data: bytes) -> str:
            raise OSError(f"no access with {KEY}")

    async def dump() -> str:
        return "word " * 10_000

    runner = runner_of(Script(calls(call("dump")), say("ok")), dump, log=Loud(), max_tokens=8_000)
    assert (await runner.run("go")).status == "completed"
    assert "OSError: no access with [secret]" in caplog.text


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ('{"access_token": "abcdef", "n": 1}', '{"access_token": "***", "n": 1}'),
        (json.dumps({"args": '{"api_key":"abc def"}'}), json.dumps({"args": '{"api_key":"***"}'})),
        (
            json.dumps(json.dumps({"args": '{"DB-Password": "p w d!"}'})),
            json.dumps(json.dumps({"args": '{"DB-Password": "***"}'})),
        ),
        ('"Authorization":"Bearer abc"', '"Authorization":"***"'),
        ("export GITHUB_TOKEN=abcdef12 next", "export GITHUB_TOKEN=*** next"),
        ('{"max_tokens": 5, "token": "word", "dedupe_key": "daily"}', None),
        ('{"note": "the password is short", "key": "value"}', None),
        ("KEY=value and TOKENS=12345678", None),
        ("Bearer of bad news", None),
        ("\\" * 20_000, None),
        ('"' + "a_" * 20_000, None),
    ],
)
def test_given_a_value_behind_the_name_of_a_secret_when_masked_then_only_the_name_is_left(
    text: str, safe: str | None
) -> None:
    assert masked(text) == (text if safe is None else safe)
