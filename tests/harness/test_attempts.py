"""Attempts until one is good enough."""

from __future__ import annotations

import asyncio

import pytest
from judged import Answers, priced, runner_of, script, told, verdict

from deepstrike import Agent, ConfigError, DoneEvent, InMemorySessionLog, RuntimeRunner, SessionError, TextDelta
from deepstrike.errors import Overloaded, SessionBusy
from deepstrike.harness import (
    AttemptDoneEvent,
    Criterion,
    CriterionVerdict,
    EvalLoopHarness,
    HarnessDoneEvent,
    HarnessLoop,
    HarnessOutcome,
    HarnessRequest,
    QualityGate,
    SinglePassHarness,
    SubAgentHarnessConfig,
    Verdict,
    VerdictEvent,
)

HAIKU = HarnessRequest(goal="Write a haiku")


async def test_given_a_goal_when_passed_once_then_the_outcome_is_the_runs() -> None:
    model = script(priced("Hello!", 10, 2))

    outcome = await SinglePassHarness(runner_of(model)).run(HarnessRequest(goal="Say hello"), session_id="h")

    assert (outcome.result, outcome.passed, outcome.iterations, outcome.total_tokens, outcome.status) == (
        "Hello!",
        True,
        1,
        12,
        "completed",
    )
    assert (outcome.attempts, outcome.session_id, outcome.history[0].session_id) == (1, "h", "h/1")


async def test_given_a_single_pass_that_fails_when_run_then_it_passes_and_its_status_tells() -> None:
    outcome = await SinglePassHarness(runner_of(script(Overloaded("busy")))).run(HAIKU)

    assert (outcome.passed, outcome.status, outcome.feedback) == (True, "error", "busy")


@pytest.mark.parametrize("most", [1, 3])
async def test_given_a_gate_that_never_passes_when_run_then_there_are_exactly_so_many_attempts(most: int) -> None:
    model = script("one", "two", "three", "four")
    gate = Answers(False)

    outcome = await EvalLoopHarness(runner_of(model), gate=gate, max_attempts=most).run(HAIKU)

    assert (len(model.requests), len(gate.asked)) == (most, most)
    assert (outcome.result, outcome.passed, outcome.attempts) == ({1: "one", 3: "three"}[most], False, most)
    assert [(asked.result, asked.attempts) for _, asked in gate.asked] == [("one", 1), ("two", 2), ("three", 3)][:most]


async def test_given_a_judge_that_never_passes_when_run_then_there_are_exactly_three_attempts() -> None:
    model, judge = script("one", "two", "three", "four"), script(*[verdict(False, "no")] * 4)

    outcome = await HarnessLoop(runner_of(model), judge).run(HAIKU)

    assert (len(model.requests), len(judge.requests)) == (3, 3)
    assert (outcome.result, outcome.passed, outcome.attempts, outcome.feedback) == ("three", False, 3, "no")


async def test_given_a_gate_that_passes_the_second_when_run_then_it_ends_there() -> None:
    model = script("one", "two", "three")

    outcome = await EvalLoopHarness(runner_of(model), gate=Answers(False, True)).run(HAIKU)

    assert (len(model.requests), outcome.result, outcome.passed, outcome.attempts) == (2, "two", True, 2)


@pytest.mark.parametrize("most", [0, -1, True, 1.5])
def test_given_a_number_of_attempts_that_is_none_when_built_then_it_is_refused(most: int) -> None:
    runner = runner_of(script())

    with pytest.raises(ValueError, match="max_attempts"):
        EvalLoopHarness(runner, gate=Answers(True), max_attempts=most)
    with pytest.raises(ValueError, match="max_attempts"):
        HarnessLoop(runner, script(), max_attempts=most)
    with pytest.raises(ValueError, match="max_attempts"):
        SubAgentHarnessConfig(script(), max_attempts=most)


def test_given_wrong_things_when_built_then_the_error_names_them() -> None:
    runner = runner_of(script())

    with pytest.raises(ConfigError, match="gate=Answers"):
        EvalLoopHarness(runner, gate=Answers)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="QualityGate"):
        EvalLoopHarness(runner, gate=lambda request, outcome: True)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="eval_provider must be a provider"):
        HarnessLoop(runner, object())  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="eval_provider must be a provider"):
        SubAgentHarnessConfig("openai:gpt-5-mini")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="skill_dir must be the path of a folder"):
        HarnessLoop(runner, script(), skill_dir=3)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"give its runner, agent\.runner_of"):
        SinglePassHarness(Agent(script()))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="session_id must be a text"):
        SinglePassHarness(runner).run_streaming(HarnessRequest("x"), session_id=3)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="the goal is empty"):
        HarnessRequest(" ")
    with pytest.raises(ConfigError, match="the goal must be a text"):
        HarnessRequest(3)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="extensions must be a dict"):
        HarnessRequest("x", extensions=[("seed", 1)])  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="RuntimeRunner"):
        SinglePassHarness(object())  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="HarnessRequest"):
        SinglePassHarness(runner).run_streaming("Say hello")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="write criteria="):
        HarnessRequest("x", criteria="has a title")
    with pytest.raises(ConfigError, match="same text"):
        HarnessRequest("x", criteria=["a", Criterion("a")])
    with pytest.raises(ConfigError, match="criterion"):
        Criterion(" ")
    with pytest.raises(ConfigError, match="weight"):
        Criterion("a", weight=-1)
    with pytest.raises(ConfigError, match="required"):
        Criterion("a", required=1)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="score"):
        Verdict(True, score=1.5)
    with pytest.raises(ConfigError, match="passed"):
        Verdict("yes")  # type: ignore[arg-type]


async def test_given_feedback_when_tried_again_then_it_is_a_turn_behind_the_goal_and_the_attempt_before_stays_out() -> (
    None
):
    model, judge = script("one", "two", "three"), script(*(verdict(False, said) for said in ("F1", "F2", "F3")))

    await HarnessLoop(runner_of(model), judge).run(HAIKU)

    first, second, third = map(told, model.requests)
    assert first == [["Write a haiku"]]
    assert second == [
        ["Write a haiku"],
        ["An earlier attempt at this goal was not good enough.\nWhat was said of it:\nF1"],
    ]
    assert [turn[0] for turn in third][1:] == [second[1][0].replace("F1", "F2")]
    assert all(len(request.turns) == len(told(request)) for request in model.requests), "no turn of an assistant"
    shown = ["\n".join(text for turn in told(request) for text in turn) for request in judge.requests]
    assert ["one" in text for text in shown] == [True, False, False]
    assert "two" in shown[1]
    assert "F1" not in shown[1]


async def test_given_scores_when_no_attempt_passes_then_the_best_is_kept() -> None:
    model = script("one", "two", "three")
    gate = Answers(Verdict(False, "a", 0.2), Verdict(False, "b", 0.9), Verdict(False, "c", 0.5))

    outcome = await EvalLoopHarness(runner_of(model), gate=gate).run(HAIKU)

    assert (outcome.result, outcome.overall_score, outcome.feedback, outcome.attempts) == ("two", 0.9, "b", 3)
    assert [each.verdict.score for each in outcome.history] == [0.2, 0.9, 0.5]


async def test_given_a_run_that_ended_in_error_when_the_gate_would_pass_it_then_it_has_not_passed() -> None:
    gate = Answers(True)

    outcome = await EvalLoopHarness(runner_of(script(Overloaded("busy"))), gate=gate, max_attempts=1).run(HAIKU)

    assert (outcome.passed, outcome.status, gate.asked) == (False, "error", [])
    assert outcome.verdict == Verdict(False, "The run failed: busy", problem="run_failed")


async def test_given_an_attempt_that_failed_when_the_next_passes_then_it_is_told_nothing_of_the_failure() -> None:
    model = script(Overloaded("busy"), "fine")

    outcome = await EvalLoopHarness(runner_of(model), gate=Answers(True)).run(HAIKU)

    assert (outcome.passed, outcome.result, outcome.attempts) == (True, "fine", 2)
    assert told(model.requests[1]) == [["Write a haiku"]]


async def test_given_attempts_of_which_the_last_fail_when_none_passes_then_the_best_that_ran_is_kept() -> None:
    model = script("one", Overloaded("busy"), Overloaded("busy"))

    outcome = await EvalLoopHarness(runner_of(model), gate=Answers(Verdict(False, "short", 0.1))).run(HAIKU)

    assert (outcome.result, outcome.status, outcome.feedback, outcome.attempts) == ("one", "completed", "short", 3)
    assert [each.status for each in outcome.history] == ["completed", "error", "error"]


async def test_given_a_gate_that_raises_when_run_then_that_is_a_failure_which_says_so() -> None:
    gate = Answers(ZeroDivisionError("by zero"))

    outcome = await EvalLoopHarness(runner_of(script("one")), gate=gate, max_attempts=1).run(HAIKU)

    assert not outcome.passed
    assert outcome.verdict is not None
    assert outcome.verdict.problem == "judge_failed"
    assert "the gate Answers failed: ZeroDivisionError: by zero" in outcome.feedback


class Odd(QualityGate):
    """A gate that gives what is no verdict; not a coroutine function, so it runs in a thread."""

    def evaluate(self, request: HarnessRequest, outcome: HarnessOutcome) -> object:
        return "true"


class Plain(QualityGate):
    """A gate without await."""

    def evaluate(self, request: HarnessRequest, outcome: HarnessOutcome) -> bool:
        return "hello" in outcome.result.lower()


async def test_given_a_gate_that_gives_a_word_when_run_then_it_has_not_passed() -> None:
    outcome = await EvalLoopHarness(runner_of(script("one")), gate=Odd(), max_attempts=1).run(HAIKU)

    assert "evaluate gave str, not True, False or a Verdict" in outcome.feedback
    assert not outcome.passed


async def test_given_a_gate_that_is_no_coroutine_when_run_then_it_serves_as_well() -> None:
    outcome = await EvalLoopHarness(runner_of(script("Oh", "Hello!")), gate=Plain()).run(HAIKU)

    assert (outcome.passed, outcome.result) == (True, "Hello!")


async def test_given_criteria_when_a_required_one_failed_then_passed_is_overruled() -> None:
    request = HarnessRequest("x", criteria=["has a title", Criterion("is short", required=False, weight=3.0)])
    rulings = [{"criterion": 1, "passed": False, "reason": "none"}, {"criterion": 2, "passed": True}]
    model, judge = script("one", "two"), script(verdict(True, "good", criteria=rulings), verdict(True, "fine"))

    outcome = await HarnessLoop(runner_of(model), judge).run(request)

    first = outcome.history[0].verdict
    assert first == Verdict(
        False,
        "good",
        0.75,
        (CriterionVerdict("has a title", False, "none"), CriterionVerdict("is short", True)),
    )
    assert (outcome.passed, outcome.result) == (True, "two")
    assert told(model.requests[0]) == [["x", "Criteria:\n- has a title\n- is short"]]
    assert told(model.requests[1])[1][0].endswith("good\nNot met:\n- has a title: none")


async def test_given_criteria_when_only_an_optional_one_failed_then_it_passes() -> None:
    request = HarnessRequest("x", criteria=["has a title", Criterion("is short", required=False)])
    rulings = {"has a title": True, "is short": False}

    outcome = await HarnessLoop(runner_of(script("one")), script(verdict(True, "ok", criteria=rulings))).run(request)

    assert (outcome.passed, outcome.overall_score) == (True, 0.5)


async def test_given_criteria_judged_one_by_one_when_a_required_one_is_left_out_then_it_has_not_passed() -> None:
    request = HarnessRequest("x", criteria=["has a title", "is short"])
    judge = script(verdict(True, "ok", criteria=[{"criterion": "Has  a title", "passed": "yes"}]))

    outcome = await HarnessLoop(runner_of(script("one")), judge, max_attempts=1).run(request)

    assert not outcome.passed
    assert outcome.feedback == "ok\nNothing was said of the required criterion: is short"


async def test_given_budgets_when_attempts_and_judges_spend_then_they_share_them() -> None:
    model = script(*[priced("a", 30, 10)] * 5)
    judge = script(*[priced(verdict(False, "no"), 15, 5)] * 5)
    runner = runner_of(model, max_total_tokens=100)

    outcome = await HarnessLoop(runner, judge, max_attempts=5).run(HAIKU)

    assert (outcome.status, outcome.passed) == ("token_budget", False)
    assert outcome.total_tokens == sum(each.total_tokens + each.judge_tokens for each in outcome.history)
    assert outcome.attempts < 5
    assert len(model.requests) + len(judge.requests) <= 4


async def test_given_a_gate_when_the_tokens_are_just_used_up_then_it_is_still_asked() -> None:
    runner = runner_of(script(priced("a", 60, 40)), max_total_tokens=100)

    outcome = await EvalLoopHarness(runner, gate=Answers(True)).run(HAIKU)

    assert (outcome.passed, outcome.total_tokens, outcome.status) == (True, 100, "completed")


def test_given_a_budget_in_dollars_when_the_judge_has_no_price_then_building_says_so() -> None:
    from deepstrike import RuntimeOptions
    from deepstrike.providers.base import ModelInfo
    from deepstrike.providers.scripted import ScriptedProvider
    from deepstrike.wire.policy import Price

    price = Price(1_000_000, 1_000_000, 0, 0)
    runner = RuntimeRunner(
        RuntimeOptions(provider=ScriptedProvider([], info=ModelInfo("m", price=price)), max_cost_usd=1.0)
    )

    with pytest.raises(ConfigError, match="needs a price"):
        HarnessLoop(runner, script())


async def test_given_many_harnesses_on_one_runner_when_they_run_at_once_then_each_has_its_own_answer() -> None:
    from deepstrike.providers.scripted import ScriptedProvider

    def echo(request: object) -> str:
        return told(request)[0][0].upper()  # type: ignore[arg-type]

    runner = runner_of(ScriptedProvider([echo], repeat_last=True))
    harness = EvalLoopHarness(runner, gate=Answers(True))

    outcomes = await asyncio.gather(*(harness.run(HarnessRequest(f"goal {n}")) for n in range(20)))

    assert [outcome.result for outcome in outcomes] == [f"GOAL {n}" for n in range(20)]
    assert len({outcome.session_id for outcome in outcomes}) == 20


async def test_given_a_loop_when_streamed_then_only_the_last_event_is_done_and_carries_the_verdict() -> None:
    model, judge = script("one", "two"), script(verdict(False, "no"), verdict(True, "yes", score=0.8))
    loop = HarnessLoop(runner_of(model), judge)

    events = [event async for event in loop.run_streaming(HAIKU, session_id="s")]

    assert [event.type for event in events] == [
        *("text_delta", "usage", "attempt_done", "verdict"),
        *("text_delta", "usage", "attempt_done", "verdict"),
        "done",
    ]
    done = events[-1]
    assert isinstance(done, HarnessDoneEvent)
    assert isinstance(done, DoneEvent)
    assert done.verdict == Verdict(True, "yes", 0.8)
    assert (done.iterations, done.status, done.session_id) == (2, "completed", "s")
    assert done.outcome.result == "two"
    finished = [event for event in events if isinstance(event, AttemptDoneEvent)]
    assert [(event.attempt, event.status, event.session_id) for event in finished] == [
        (1, "completed", "s/1"),
        (2, "completed", "s/2"),
    ]
    assert [event for event in events if isinstance(event, VerdictEvent)] == [
        VerdictEvent(1, Verdict(False, "no")),
        VerdictEvent(2, Verdict(True, "yes", 0.8)),
    ]
    assert [event.delta for event in events if isinstance(event, TextDelta)] == ["one", "two"]


async def test_given_a_stream_when_awaited_then_it_is_the_same_iterable_and_iterated_once() -> None:
    stream = HarnessLoop(runner_of(script("one")), script(verdict(True))).run_streaming(HAIKU)

    assert await stream is stream
    last = None
    async for event in await stream:
        last = event
    assert last is not None
    assert last.type == "done"
    with pytest.raises(RuntimeError, match="once"):
        async for _ in stream:
            pass


async def test_given_a_session_that_is_live_when_a_harness_wants_it_then_the_error_comes_through() -> None:
    log = InMemorySessionLog()
    owner = await log.acquire("s/1")
    harness = SinglePassHarness(runner_of(script("one"), log=log))

    with pytest.raises(SessionBusy):
        await harness.run(HAIKU, session_id="s")

    await log.release("s/1", owner)
    assert (await harness.run(HAIKU, session_id="s")).result == "one"
    assert issubclass(SessionBusy, SessionError)
