"""What left the prompt can be read again: results in the blob store, records in the log, in parts."""

from __future__ import annotations

import json
import re

import pytest
from doubles import Script, add, call, calls, done_of, events_of, only, result_texts, runner_of, say

from deepstrike import ConfigError, InMemorySessionLog, LocalExecutionPlane, ToolResultEvent, tool
from deepstrike.kernel import count
from deepstrike.wire.message import Image, ResultBlock, Text


@tool
async def report() -> str:
    """A long report."""
    return "".join(f"line {number}: état 中文 🛡\n" for number in range(5_000))


FULL = "".join(f"line {number}: état 中文 🛡\n" for number in range(5_000))


def recall(ref: str, offset: int | None = None) -> str:
    """The arguments of a recall."""
    return json.dumps({"ref": ref} if offset is None else {"ref": ref, "offset": offset})


async def read_again(log: InMemorySessionLog, arguments: str, session: str = "s", max_tokens: int = 8_000) -> str:
    """What a model reads that calls `recall` with these arguments in the session."""
    script = Script(calls(call("recall", arguments, "again")), say("ok"))
    events = await events_of(
        runner_of(script, add, report, log=log, max_tokens=max_tokens).run_streaming("go on", session_id=session)
    )
    assert done_of(events).status == "completed"
    return only(ToolResultEvent, events)[-1].content


async def test_given_a_result_above_its_share_when_recalled_part_by_part_then_the_whole_is_read() -> None:
    log = InMemorySessionLog()
    script = Script(calls(call("report")), say("ok"))
    await events_of(runner_of(script, report, log=log, max_tokens=8_000).run_streaming("go", session_id="s"))
    (preview,) = result_texts(script.turns[1])
    named = re.search(r"recall\((\".+\")\) reads it in parts", preview)
    assert named is not None
    ref, read, offset = json.loads(named[1]), "", 0

    while found := re.fullmatch(
        r"(.*)\n\[\d+ to (\d+) of \d+ characters; .*\]", part := await read_again(log, recall(ref, offset)), re.S
    ):
        assert count(part, "") <= 2_000
        read += found[1]
        offset = int(found[2])

    assert read + part == FULL


async def test_given_records_of_the_session_when_recalled_then_they_are_told_in_order() -> None:
    log = InMemorySessionLog()
    script = Script(calls(call("add", '{"x":17,"y":28}')), say("It is 45."))
    await events_of(runner_of(script, add, log=log).run_streaming("What is 17 + 28?", session_id="s"))

    told = await read_again(log, recall("0-6"))

    assert told == 'user: What is 17 + 28?\nassistant calls add({"x":17,"y":28})\nadd gave: 45\nassistant: It is 45.'


@pytest.mark.parametrize(("offset", "told"), [("0.0", "45"), ("1.0", "5"), ("1.5", "/offset")])
async def test_given_an_offset_with_a_point_when_recalled_then_a_whole_one_counts(offset: str, told: str) -> None:
    log = InMemorySessionLog()
    script = Script(calls(call("add", '{"x":17,"y":28}')), say("It is 45."))
    await events_of(runner_of(script, add, log=log).run_streaming("What is 17 + 28?", session_id="s"))

    found = await read_again(log, f'{{"ref":"4","offset":{offset}}}')

    assert told in found


async def test_given_the_record_of_one_result_when_recalled_then_just_its_content_is_told() -> None:
    log = InMemorySessionLog()
    script = Script(calls(call("add", '{"x":17,"y":28}')), say("It is 45."))
    await events_of(runner_of(script, add, log=log).run_streaming("What is 17 + 28?", session_id="s"))

    assert await read_again(log, recall("4")) == "45"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (recall("999"), "there is no record '999'; the records of this session are 0-"),
        (recall("3-1"), "there is no record '3-1'"),
        (recall("nothing"), "nothing here is called 'nothing'"),
        (recall("0", 10_000), "offset 10000 is beyond its end"),
        (recall("0", -1), "/offset"),
        ("{}", "ref"),
    ],
)
async def test_given_a_reference_that_is_none_when_recalled_then_the_result_says_why(arguments: str, told: str) -> None:
    assert told in await read_again(InMemorySessionLog(), arguments)


async def test_given_a_blob_of_another_session_when_recalled_then_it_is_not_read() -> None:
    log = InMemorySessionLog()
    ref = await log.put_blob("other", b"secret")

    told = await read_again(log, recall(ref))

    assert (told.startswith("nothing here is called"), "secret" in told) == (True, False)


@pytest.mark.parametrize("name", ["recall", "update_plan"])
def test_given_a_tool_with_the_name_of_a_meta_tool_when_registered_then_it_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"'{name}' is a tool of the runtime's own"):
        LocalExecutionPlane().register(tool(name=name)(lambda: "x"))


async def test_given_no_tools_when_a_model_calls_recall_then_there_is_no_such_tool() -> None:
    script = Script(calls(call("recall", recall("0"))), say("ok"))

    events = await events_of(runner_of(script).run_streaming("go"))

    assert script.requests[0].tools == ()
    assert only(ToolResultEvent, events)[0].error_kind == "unknown_tool"


PNG = Image("image/png", "aGk=")


@tool(effect="read")
def shot() -> Image:
    """A picture."""
    return PNG


async def test_given_images_of_the_user_and_of_a_tool_when_their_records_are_recalled_then_they_come_back() -> None:
    log = InMemorySessionLog()
    script = Script(calls(call("shot")), say("ok"))
    await events_of(runner_of(script, shot, log=log).run_streaming([Text("look"), PNG], session_id="s"))
    asking = Script(calls(call("recall", recall("0"), "a"), call("recall", recall("4"), "b")), say("ok"))

    await events_of(runner_of(asking, shot, log=log, max_tokens=40_000).run_streaming("again", session_id="s"))

    results = [turn.parts for turn in asking.turns[1] if isinstance(turn, ResultBlock)]
    assert results[-2:] == [(Text("user: look\n[image image/png]"), PNG), (Text("[image image/png]"), PNG)]


async def test_given_an_image_that_has_no_room_when_recalled_then_the_model_is_told() -> None:
    log = InMemorySessionLog()
    script = Script(calls(call("shot")), say("ok"))
    await events_of(runner_of(script, shot, log=log).run_streaming("look", session_id="s"))
    asking = Script(calls(call("recall", recall("4"))), say("ok"))

    await events_of(runner_of(asking, shot, log=log, max_tokens=3_000).run_streaming("again", session_id="s"))

    parts = asking.turns[-1][-1].parts
    assert parts == (Text("[image image/png]"), Text("[one of 1600 tokens has no room in this context window]"))


async def test_given_several_records_when_recalled_then_an_image_in_them_is_told_with_its_own_reference() -> None:
    log = InMemorySessionLog()
    script = Script(calls(call("shot")), say("ok"))
    await events_of(runner_of(script, shot, log=log).run_streaming([Text("look"), PNG], session_id="s"))

    told = await read_again(log, recall("0-5"))

    assert told.splitlines()[:2] == ["user: look", '[image image/png; recall("0")]']
    assert 'shot gave: [image image/png; recall("4")]' in told


async def test_given_a_talk_without_tools_when_something_left_then_recall_is_offered_and_reads_it() -> None:
    log = InMemorySessionLog()
    for number in range(8):
        talk = Script(say("so it is " * 150))
        await events_of(runner_of(talk, log=log, max_tokens=2_500).run_streaming(f"Visit {number}.", session_id="s"))
    asking = Script(calls(call("recall", recall("0"))), say("ok"))

    await events_of(runner_of(asking, log=log, max_tokens=2_500).run_streaming("And the first?", session_id="s"))

    assert [spec.name for spec in asking.requests[0].tools] == ["recall"]
    assert result_texts(asking.turns[1])[-1] == "user: Visit 0."
