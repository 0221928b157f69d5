"""Data sets of goals: read, run, counted, compared."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import ClassVar

import pytest
from judged import Answers, priced, runner_of, script, told, verdict

from deepstrike import ConfigError, Governance, InMemorySessionLog, LocalExecutionPlane, RuntimeOptions, RuntimeRunner
from deepstrike.errors import Overloaded
from deepstrike.harness import Criterion, Verdict
from deepstrike.harness.evaluate import Case, Evaluation, Trial, compare, evaluate, plot, read_cases
from deepstrike.providers.base import Finish, ModelEvent, ModelRequest, ToolCall
from deepstrike.providers.scripted import ScriptedProvider
from deepstrike.stream import TextDelta
from deepstrike.tools.decorator import tool

CASES = [Case(str(n), f"What is {n} + {n}?", contains=(str(2 * n),)) for n in range(10)]


def doubler(wrong: frozenset[str] = frozenset(), broken: frozenset[str] = frozenset()) -> ScriptedProvider:
    """A model that doubles; of some numbers it gives something else, at some it fails."""

    def answer(request: ModelRequest) -> list[ModelEvent] | BaseException:
        number = told(request)[0][0].split()[2]
        if number in broken:
            return Overloaded("busy")
        return priced(f"It is {-1 if number in wrong else 2 * int(number)}.", 10, 5)

    return ScriptedProvider([answer], repeat_last=True)


async def test_given_cases_when_evaluated_then_each_trial_says_how_it_went() -> None:
    evaluation = await evaluate(runner_of(doubler(frozenset("37"))), CASES, name="doubler", session_id="e")

    assert [trial.passed for trial in evaluation.trials] == [n not in (3, 7) for n in range(10)]
    interval = evaluation.pass_rate
    assert interval is not None
    assert (interval.value, round(interval.low, 3), round(interval.high, 3)) == (0.8, 0.49, 0.943)
    assert (evaluation.tokens, evaluation.complete, evaluation.errors) == (150, True, ())
    wrong = evaluation.trials[3]
    assert (wrong.case, wrong.result, wrong.feedback) == ("3", "It is -1.", "the answer does not contain '6'")
    assert wrong.session_id == f"e/3-{CASES[3].digest}/1"


async def test_given_trials_that_fail_when_evaluated_then_they_are_counted_apart() -> None:
    evaluation = await evaluate(runner_of(doubler(frozenset("3"), frozenset("78"))), CASES)

    interval = evaluation.pass_rate
    assert interval is not None
    assert interval.value == 7 / 8
    assert [(trial.case, trial.passed, trial.error) for trial in evaluation.errors] == [
        ("7", None, "busy"),
        ("8", None, "busy"),
    ]


async def test_given_repeats_when_some_trials_fail_then_pass_k_is_less_than_the_pass_rate() -> None:
    answers = iter(["0", "0", "0", "2", "no", "2"])
    model = ScriptedProvider([lambda _: next(answers)], repeat_last=True)

    evaluation = await evaluate(runner_of(model), CASES[:2], repeats=3, concurrency=1)

    assert [(case.passed, case.trials) for case in evaluation.cases] == [(3, 3), (2, 3)]
    interval = evaluation.pass_rate
    assert interval is not None
    assert interval.value == pytest.approx(5 / 6)
    assert [evaluation.pass_all(k) for k in (1, 2, 3, 4)] == [
        pytest.approx(5 / 6),
        pytest.approx((1 + 1 / 3) / 2),
        0.5,
        None,
    ]


async def test_given_an_evaluation_when_made_again_under_its_name_then_only_what_is_missing_is_run() -> None:
    log = InMemorySessionLog()
    first = await evaluate(runner_of(doubler(frozenset("3"), frozenset("78")), log=log), CASES, session_id="e")
    model = doubler()

    again = await evaluate(
        runner_of(model, log=log), [*CASES, Case("new", "What is 50 + 50?", ("100",))], session_id="e"
    )

    asked = sorted(told(request)[0][0] for request in model.requests)
    assert asked == ["What is 50 + 50?", "What is 7 + 7?", "What is 8 + 8?"]
    assert [trial.passed for trial in again.trials] == [True] * 3 + [False] + [True] * 7
    assert again.trials[:7] == first.trials[:7]


async def test_given_another_goal_under_the_same_id_when_evaluated_again_then_it_is_another_case() -> None:
    log = InMemorySessionLog()
    await evaluate(runner_of(doubler(), log=log), [Case("a", "What is 1 + 1?", ("2",))], session_id="e")
    model = doubler()

    again = await evaluate(runner_of(model, log=log), [Case("a", "What is 4 + 4?", ("8",))], session_id="e")

    assert len(model.requests) == 1
    assert again.trials[0].passed


async def test_given_a_judge_when_evaluated_then_it_says_what_passes_and_the_case_must_hold_too() -> None:
    cases = [Case("a", "What is 1 + 1?", ("3",), criteria=("is polite",)), Case("b", "What is 2 + 2?")]
    judge = script(verdict(True, "fine", score=0.7), verdict(True))

    evaluation = await evaluate(runner_of(doubler()), cases, eval_provider=judge, concurrency=1)

    assert [trial.passed for trial in evaluation.trials] == [False, True]
    assert evaluation.trials[0].score == 0.7
    assert "1. is polite (required)" in told(judge.requests[0])[0][-1]


async def test_given_a_judge_that_cannot_be_read_when_evaluated_then_nothing_was_measured() -> None:
    judge = ScriptedProvider(["prose"], repeat_last=True)

    evaluation = await evaluate(runner_of(doubler()), CASES[:1], eval_provider=judge)

    (trial,) = evaluation.errors
    assert trial.error is not None
    assert "could not be read" in trial.error


async def test_given_a_gate_and_attempts_when_evaluated_then_a_trial_is_a_loop() -> None:
    gate = Answers(Verdict(False, "again"), True)

    evaluation = await evaluate(runner_of(doubler()), CASES[:1], gate=gate, max_attempts=3)

    assert (evaluation.trials[0].passed, evaluation.trials[0].iterations) == (True, 2)


async def test_given_a_run_that_waits_for_a_person_when_evaluated_then_nothing_was_measured() -> None:
    @tool
    async def send() -> str:
        """Send."""
        return "sent"

    call: list[ModelEvent] = [ToolCall("c", "send", "{}"), Finish("tool_calls")]
    runner = RuntimeRunner(
        RuntimeOptions(
            provider=script(call),
            execution_plane=LocalExecutionPlane().register(send),
            governance=Governance("ask"),
        )
    )

    evaluation = await evaluate(runner, CASES[:1])

    assert evaluation.trials[0].error == "the run waits for answers"


class Counting:
    """A provider that counts how many calls are under way at once."""

    def __init__(self) -> None:
        self.now = 0
        self.most = 0

    async def stream(self, request: ModelRequest):  # type: ignore[no-untyped-def]
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(20):
            await asyncio.sleep(0)
        self.now -= 1
        yield TextDelta("0")
        yield Finish("stop")


@pytest.mark.parametrize("most", [1, 3])
async def test_given_a_bound_when_evaluated_then_so_many_run_at_once_and_no_more(most: int) -> None:
    provider = Counting()

    await evaluate(runner_of(provider), CASES, concurrency=most)

    assert provider.most == most


async def test_given_an_evaluation_when_interrupted_then_it_ends_with_what_there_is_and_can_go_on() -> None:
    log = InMemorySessionLog()
    model = doubler()
    runner = runner_of(model, log=log)

    def stop(trial: Trial) -> None:
        if trial.case == "3":
            runner.interrupt()

    part = await evaluate(runner, CASES, concurrency=1, session_id="e", on_trial=stop)
    assert ([trial.case for trial in part.trials], part.complete) == (["0", "1", "2", "3"], False)
    assert "evaluate again as 'e' to go on" in part.table()

    whole = await evaluate(runner, CASES, session_id="e")
    assert (len(whole.trials), whole.complete, len(model.requests)) == (10, True, 10)


async def test_given_an_evaluation_when_cancelled_at_any_trial_then_no_task_is_left_and_it_can_go_on() -> None:
    for at in range(10):
        log = InMemorySessionLog()

        async def work(log: InMemorySessionLog = log, at: int = at) -> None:
            def stop(trial: Trial) -> None:
                if trial.case == str(at):  # noqa: B023  (its own argument)
                    task.cancel()  # noqa: B023  (this turn's)

            await evaluate(runner_of(doubler(), log=log), CASES, concurrency=3, session_id="e", on_trial=stop)
            await asyncio.sleep(0)

        task = asyncio.create_task(work())
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}
        model = doubler()
        whole = await evaluate(runner_of(model, log=log), CASES, session_id="e")
        assert all(trial.passed for trial in whole.trials)
        assert len(model.requests) < 10


async def test_given_a_listener_that_raises_when_evaluated_then_it_comes_through_and_no_task_is_left() -> None:
    def fail(trial: Trial) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await evaluate(runner_of(doubler()), CASES, on_trial=fail)
    assert asyncio.all_tasks() == {asyncio.current_task()}


KILLED = """
import asyncio, os, signal, sys
from deepstrike import RuntimeOptions, RuntimeRunner, SqliteSessionLog
from deepstrike.harness.evaluate import Case, evaluate
from deepstrike.providers.base import Finish
from deepstrike.stream import TextDelta

class Model:
    calls = 0
    async def stream(self, request):
        Model.calls += 1
        yield TextDelta("yes")
        if Model.calls == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        yield Finish("stop")

cases = [Case(str(n), f"goal {n}", ("yes",)) for n in range(6)]
runner = RuntimeRunner(RuntimeOptions(provider=Model(), session_log=SqliteSessionLog(sys.argv[1])))
done = asyncio.run(evaluate(runner, cases, session_id="e", concurrency=2))
print(Model.calls, [trial.passed for trial in done.trials])
"""


def test_given_an_evaluation_that_is_killed_when_made_again_then_what_was_done_is_not_done_again(
    tmp_path: Path,
) -> None:
    log = str(tmp_path / "sessions.db")

    killed = subprocess.run([sys.executable, "-c", KILLED, log, "4"], capture_output=True, text=True, timeout=60)
    assert killed.returncode == -9, killed.stderr
    done = subprocess.run([sys.executable, "-c", KILLED, log, "0"], capture_output=True, text=True, timeout=60)

    calls, _, passed = done.stdout.partition(" ")
    assert passed.strip() == str([True] * 6), done.stderr
    assert 3 <= int(calls) <= 5


async def scored(name: str, passes: str) -> Evaluation:
    """An evaluation of ten cases, of which those whose digits are in `passes` pass."""
    wrong = frozenset("0123456789") - frozenset(passes)
    return await evaluate(runner_of(doubler(wrong)), CASES, name=name)


async def test_given_two_that_differ_by_little_when_compared_then_noise_is_no_win() -> None:
    found = compare(await scored("old", "01234"), await scored("new", "0123456"))

    assert (found.winner, found.better, found.worse, found.cases, found.p) == (None, 2, 0, 10, 0.5)
    assert found.difference.low < 0 < found.difference.high
    assert str(found).startswith("no difference shown: +20.0%")


async def test_given_two_that_differ_by_much_when_compared_then_the_better_one_is_named() -> None:
    found = compare(await scored("old", "012"), await scored("new", "012345678"))

    assert (found.winner, found.p) == ("right", 0.03125)
    assert str(found).startswith("new is better: +60.0%")
    assert json.loads(found.to_json())["winner"] == "right"
    assert compare(await scored("new", "012345678"), await scored("old", "012")).winner == "left"


async def test_given_cases_that_one_could_not_measure_when_compared_then_they_are_left_out() -> None:
    left = await evaluate(runner_of(doubler(broken=frozenset("9"))), CASES)
    right = await evaluate(runner_of(doubler()), CASES[:9])

    found = compare(left, right)

    assert (found.cases, found.left_out, found.winner) == (9, 1, None)
    with pytest.raises(ConfigError, match="share no case"):
        compare(left, await evaluate(runner_of(doubler()), [Case("x", "What is 1 + 1?", ("2",))]))
    with pytest.raises(ConfigError, match="same repeats"):
        compare(left, await evaluate(runner_of(doubler()), CASES, repeats=2))


async def test_given_an_evaluation_when_shown_then_table_json_and_picture_say_the_same() -> None:
    cases = [*CASES[:4], Case("<b>\x1b[31m", "What is 4 + 4?", ("8",))]
    evaluation = await evaluate(runner_of(doubler(frozenset("3"))), cases, name="a & b", session_id="e")

    table = evaluation.table().splitlines()
    assert table[0].split() == ["case", "passed", "errors", "tokens", "time", "why", "not"]
    assert table[4].split()[:4] == ["3", "0/1", "0", "15"]
    assert table[4].endswith("the answer does not contain '6'")
    assert "a & b: 80.0% (37.6% to 96.4%) of 5 cases passed" in table
    assert "\x1b" not in evaluation.table()

    told_json = json.loads(evaluation.to_json())
    assert (told_json["cases"], told_json["pass_rate"]["value"], told_json["errors"]) == (5, 0.8, 0)
    assert [trial["passed"] for trial in told_json["trials"]] == [True, True, True, False, True]

    root = ET.fromstring(plot([evaluation, evaluation]))
    texts = ["".join(each.itertext()) for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "a & b: 80.0% (37.6% to 96.4%)" in texts
    assert len(list(root.iter("{http://www.w3.org/2000/svg}rect"))) == 10


async def test_given_nothing_measured_when_shown_then_that_is_said() -> None:
    evaluation = await evaluate(runner_of(doubler(broken=frozenset("0"))), CASES[:1])

    assert (evaluation.pass_rate, evaluation.pass_all(1), evaluation.latency_ms(0.5)) == (None, None, None)
    assert "nothing was measured" in evaluation.table()
    assert "nothing was measured" in plot([evaluation])


def test_given_a_file_of_cases_when_read_then_each_line_is_one(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(
        '\ufeff{"goal": "a"}\n\n'
        '{"id": 7, "goal": "b", "contains": "x", "criteria": ["c", {"text": "d", "required": false, "weight": 2}]}\n'
        '{"id": "e", "goal": "f", "contains": ["x", "y"], "equals": "z", "extensions": {"temperature": 0.1}}\n'
    )

    assert read_cases(path) == [
        Case("1", "a"),
        Case("7", "b", ("x",), criteria=("c", Criterion("d", False, 2.0))),
        Case("e", "f", ("x", "y"), "z", (), {"temperature": 0.1}),
    ]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"goal": 1}', "goal"),
        ('{"gaol": "a"}', "gaol"),
        ('{"goal": "a", "expected": "b"}', "expected"),
        ('{"goal": " "}', "not empty"),
        ("nonsense", "JSON"),
        ('["a"]', "object"),
        ('{"goal": "a", "criteria": ["x", "x"]}', "same text"),
        ('{"goal": "a", "contains": [""]}', "contains"),
        ("[" * 100_000, "a line is a JSON object"),
    ],
)
def test_given_a_line_that_is_wrong_when_read_then_the_error_names_file_and_line(
    line: str, says: str, tmp_path: Path
) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(f'{{"goal": "fine"}}\n{line}\n')

    with pytest.raises(ConfigError, match=says) as error:
        read_cases(path)

    assert str(error.value).startswith(f"{path}:2: ")


async def test_given_wrong_arguments_when_evaluated_then_the_error_says_so(tmp_path: Path) -> None:
    runner = runner_of(doubler())
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n")
    (tmp_path / "bytes.jsonl").write_bytes(b'{"goal": "\xff"}')

    for cases, says in [
        (empty, "no case"),
        (tmp_path / "missing.jsonl", "cannot be read"),
        (tmp_path / "bytes.jsonl", ":1: "),
        ([], "no case"),
        ([CASES[0], CASES[0]], "two cases"),
        ([Case("a", "b")], "nothing says whether case 'a' has passed"),
        (["a"], "Case"),
        (5, "list of Case"),
    ]:
        with pytest.raises(ConfigError, match=says):
            await evaluate(runner, cases)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="repeats"):
        await evaluate(runner, CASES, repeats=0)
    with pytest.raises(ConfigError, match="concurrency"):
        await evaluate(runner, CASES, concurrency=0)
    with pytest.raises(ConfigError, match="one of them"):
        await evaluate(runner, CASES, gate=Answers(True), eval_provider=script())
    with pytest.raises(ConfigError, match="max_attempts"):
        await evaluate(runner, CASES, max_attempts=2)
    with pytest.raises(ConfigError, match="name"):
        await evaluate(runner, CASES, name=3)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="session_id"):
        await evaluate(runner, CASES, session_id=3)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="two evaluations"):
        compare(await evaluate(runner, CASES), 3)  # type: ignore[arg-type]


def test_given_texts_that_must_stand_in_the_answer_when_they_are_one_or_many_then_both_are_taken() -> None:
    for contains in ("45", ("45",), ["45"]):
        case = Case("sum", "What is 17 + 28?", contains)
        assert (case.check("It is 45.").passed, case.check("It is 46.").passed) == (True, False)
    for wrong in ("", [""], [3], 3):
        with pytest.raises(ConfigError, match="contains must be a text"):
            Case("sum", "What is 17 + 28?", wrong)  # type: ignore[arg-type]


async def test_given_an_agent_when_evaluated_then_its_runner_is_used() -> None:
    class Agent:
        asked: ClassVar[list[str | None]] = []

        def runner_of(self, session_id: str | None) -> RuntimeRunner:
            self.asked.append(session_id)
            return runner_of(doubler())

    evaluations = [await evaluate(Agent(), CASES[:2], session_id=session) for session in (None, "e")]

    assert [[trial.passed for trial in evaluation.trials] for evaluation in evaluations] == [[True, True]] * 2
    assert Agent.asked == [None, "e"]
