"""What our errors say: nothing that is bound, whatever they were given."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

import pytest
from doubles import Script, call, calls, runner_of, say

from deepstrike import (
    Approve,
    DeepStrikeError,
    Governance,
    InMemorySessionLog,
    LocalExecutionPlane,
    PermissionManager,
    RuntimeOptions,
    RuntimeSignal,
    ToolError,
    secrets,
    tool,
)
from deepstrike.secrets import HIDDEN, Bound, binding

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = "hunter2-'\"\\\n-hunter2"


@pytest.fixture(autouse=True)
def one_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else is bound."""
    monkeypatch.setattr(binding, "_values", frozenset())
    monkeypatch.setattr(binding, "_bound", Bound())
    secrets.bind(KEY)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Governance(KEY),
        lambda: Governance().add_permission_rule("x", KEY),
        lambda: Governance().set_rate_limit("x", KEY, 1),  # type: ignore[arg-type]
        lambda: Governance().add_constraint("x", {KEY: 1}),
        lambda: PermissionManager(KEY),  # type: ignore[arg-type]
        lambda: RuntimeSignal("x", payload={}, urgency=KEY),  # type: ignore[arg-type]
    ],
)
def test_given_a_secret_where_it_does_not_belong_when_refused_then_the_message_does_not_tell_it(
    wrong: Callable[[], object],
) -> None:
    with pytest.raises(DeepStrikeError) as caught:
        wrong()
    assert HIDDEN in caught.value.message
    assert KEY not in str(caught.value) + repr(caught.value)
    assert "hunter2" not in str(caught.value) + repr(caught.value)


def test_given_a_secret_in_a_schema_when_refused_then_no_cause_of_the_error_tells_it() -> None:
    async def pay(a: str) -> str:
        return a

    wrongs: list[Callable[[], object]] = [
        lambda: RuntimeOptions(provider=Script(), execution_plane=LocalExecutionPlane(), output_type={"type": KEY}),
        lambda: tool(parameters={"type": "object", "properties": {"a": {"type": KEY}}})(pay),
    ]
    for wrong in wrongs:
        with pytest.raises(DeepStrikeError) as caught:
            wrong()
        assert HIDDEN in caught.value.message
        assert "hunter2" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("answers", [{KEY: True}, {"2": Approve(KEY)}, {"2": Approve([KEY])}])  # type: ignore[arg-type]
async def test_given_a_secret_as_a_wrong_answer_when_refused_then_the_message_does_not_tell_it(
    answers: dict[str, object],
) -> None:
    async def pay() -> str:
        return "paid"

    log = InMemorySessionLog()
    runner = runner_of(Script(calls(call("pay")), say("ok")), pay, log=log, governance=Governance("ask"))
    await runner.run("go", session_id="s")
    with pytest.raises(DeepStrikeError) as caught:
        await runner.resume("s", answers=answers)
    assert "hunter2" not in str(caught.value) + repr(caught.value)


def test_given_what_is_no_text_when_an_error_is_made_of_it_then_it_is_left_as_it_is() -> None:
    assert ToolError(7).message == 7  # type: ignore[arg-type, comparison-overlap]
