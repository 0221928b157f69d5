"""MCP planes against servers whose lists of tools are too much: the rest of them is served."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest
from mcp_calls import call, rogue, text_of
from mcp_raw_web import raw_web

from deepstrike.testing import ManualClock
from deepstrike.wire.message import Text, ToolResult

pytest.importorskip("mcp", reason="the official client is not installed")
from deepstrike.execution.mcp.catalogue import Catalogue, Choice, Listed
from deepstrike.execution.mcp.plane import McpExecutionPlane
from deepstrike.execution.mcp.trimming import trim

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_raw_web import Exchange

FINE = ToolResult((Text("fine"),))
OK = {"name": "ok", "inputSchema": {"type": "object"}}


def promising(**properties: object) -> bytes:
    """A list with a tool that promises results of this form."""
    schema = {"type": "object", "properties": properties, "required": [*properties]}
    return json.dumps([OK, {**OK, "name": "promises", "outputSchema": schema}]).encode()


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ({"structuredContent": {"a": "aaaa"}}, ""),
        ({"structuredContent": {"a": "a" * 40 + "!"}}, "does not fit its own schema: /a"),
        ({"structuredContent": {}}, "does not fit its own schema"),
        ({}, "has no structured content, though it declares a schema for it; the call may have taken effect"),
        ({"isError": True}, "without a word"),
    ],
)
async def test_given_a_form_for_results_with_a_costly_pattern_when_called_then_results_are_checked_within_a_bound(
    result: dict[str, object], words: str
) -> None:
    async def promises(exchange: Exchange) -> None:
        await exchange.result({"content": [], **result})

    async with raw_web(promises=promises) as web:
        web.listing = promising(a={"type": "string", "pattern": "^(a+)+$"})
        async with McpExecutionPlane(web.url, revision="2025-11-25") as plane:
            done = await call(plane, "promises")
            after = await call(plane, "ok")

    assert (bool(done.error_kind), words in text_of(done), after) == (bool(words), True, FINE)


def entry(name: str, schema: str = '{"type":"object"}', description: str = "") -> str:
    return f'{{"name":{json.dumps(name)},"description":{json.dumps(description)},"inputSchema":{schema}}}'


def nested(levels: int) -> str:
    return '{"type":"object","properties":{"a":' + '{"properties":{"a":' * levels + "{}" + "}}" * levels + "}}"


TOO_LONG = "its entry in the server's list is longer than 262144 bytes"
TOO_DEEP = "its entry in the server's list is nested deeper than 128 levels"
NO_ROOM = "the server's list of tools is longer than 1048576 bytes"
MANY = [entry(f"t{number}") for number in range(30_000)]
WIDE = json.dumps({"type": "object", "properties": {f"p{each}": {"type": "string"} for each in range(100_000)}})
FULL = json.dumps({"type": "object", "enum": ["x" * 60_000]})
NUMBERS = json.dumps({"type": "object", "enum": list(range(1_000_000))})

TOO_MUCH = {
    "deep": ([entry("odd", nested(10_000))], {"odd": TOO_DEEP}),
    "deep list": ([entry("odd", '{"type":"object","enum":' + "[" * 100_000 + "]" * 100_000 + "}")], {"odd": TOO_DEEP}),
    "a little too deep": ([entry("odd", nested(64))], {"odd": TOO_DEEP}),
    "wide": ([entry("odd", WIDE)], {"odd": TOO_LONG}),
    "numbers": ([entry("odd", NUMBERS)], {"odd": TOO_LONG}),
    "described": ([entry("odd", description='a "b" \\ ' * 300_000)], {"odd": TOO_LONG}),
    "named": ([entry("n" * 3_000_000)], {"n" * 100: TOO_LONG}),
    "a little too named": ([entry("n" * 1025)], {"n" * 100: "its name is longer than 1024 bytes"}),
    "many": (MANY, {"(further tools)": "the server lists over 4096 tools, and 25905 more"}),
    "full": ([entry(f"t{number}", FULL) for number in range(20)], {"t17": NO_ROOM, "t18": NO_ROOM, "t19": NO_ROOM}),
}


@pytest.mark.parametrize("way", ["pipes", "answer", "stream"])
@pytest.mark.parametrize("what", TOO_MUCH)
async def test_given_a_list_with_too_much_when_opened_then_that_is_left_out_and_neither_memory_nor_the_loop_goes_to_it(
    what: str, way: str, tmp_path: Path
) -> None:
    entries, omitted = TOO_MUCH[what]
    listing = "[" + ",".join([entry("ok"), *entries]) + "]"
    async with AsyncExitStack() as stack:
        if way == "pipes":
            (tmp_path / "list").write_text(listing)
            plane = McpExecutionPlane(rogue(f"@{tmp_path / 'list'}"), revision="2025-11-25")
        else:
            web = await stack.enter_async_context(raw_web())
            web.listing, web.listed_in_a_stream = listing.encode(), way == "stream"
            plane = McpExecutionPlane(web.url, revision="2025-11-25")
        await McpExecutionPlane(rogue("plain"), revision="2025-11-25").open()  # what is loaded once counts for no list
        tracemalloc.start()
        try:
            await stack.enter_async_context(plane)
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        served = await call(plane, "ok")

    assert ({name: why for name, why in plane.omitted.items() if name in omitted}, served) == (omitted, FINE)
    assert len(plane.omitted) == len(omitted)
    assert most < 8 * len(listing) + 60_000_000


async def test_given_a_long_list_when_it_is_read_then_the_loop_goes_on() -> None:
    longest, over = 0.0, False

    async def beat() -> None:
        nonlocal longest
        clock = asyncio.get_running_loop().time
        while not over:
            before = clock()
            await asyncio.sleep(0.005)
            longest = max(longest, clock() - before)

    async with raw_web() as web:
        web.listing = f"[{entry('ok')},{','.join(MANY)}]".encode()
        async with McpExecutionPlane(web.url, revision="2025-11-25") as plane:
            beating = asyncio.ensure_future(beat())
            await plane.aclose()
            await plane.open()
            over = True
            await beating

    assert longest < 0.5


@pytest.mark.parametrize(
    "message",
    [
        '{"jsonrpc":"2.0","id":1,"result":{"tools":[%s]}}',
        '{"result":{"nextCursor":"}]\\"","tools" : [ %s ] ,"a":[{"tools":[]}]},"id":1}',
        '{"result":{"\\u0074ools":[%s]}}',
        '{"result":{"tools":[]},"result":{"tools":[1,"a",[2],%s]}}',
    ],
)
def test_given_a_message_with_a_list_when_it_is_cut_to_size_then_all_else_stays_as_it_was(message: str) -> None:
    message = message.replace("\\\\", "\\")
    good = entry('an "odd" one\\', description="]}")
    whole = (message % good).encode()
    cut = json.loads(trim((message % f"{good},{entry('bad', nested(70))}").encode()))

    note = {"name": "bad", "inputSchema": {"type": "object"}, "_meta": {"deepstrike/left_out": TOO_DEEP}}
    assert trim(whole) == whole
    assert [each for each in cut["result"]["tools"] if isinstance(each, dict)] == [json.loads(good), note]
    assert {**json.loads(whole)["result"], "tools": []} == {**cut["result"], "tools": []}


@pytest.mark.parametrize(
    "data", [b"", b"{", b'{"result":{"tools":[{"name":"', b']}]}"', b"\\", b'{"a":{"tools":[{}]}}']
)
def test_given_bytes_that_are_no_list_when_cut_to_size_then_they_stay(data: bytes) -> None:
    assert trim(data) == data


async def test_given_more_pages_than_tools_that_there_may_be_when_opened_then_the_first_ones_are_offered() -> None:
    async def pages(exchange: Exchange) -> None:
        number = int(exchange.message.get("params", {}).get("cursor", 0))
        listed = [{**OK, "name": f"t{number}_{each}"} for each in range(500)]
        await exchange.result({"tools": listed, "nextCursor": str(number + 1)})

    async with raw_web() as web:
        web.lists = pages
        async with McpExecutionPlane(web.url, revision="2025-11-25") as plane:
            offered, omitted = len(plane.specs()), plane.omitted

    assert offered == 4500
    assert omitted == {"(further tools)": "the server lists over 4096 tools, or 1048576 bytes of them"}


def doubling(levels: int = 17) -> dict[str, object]:
    """A schema that asks for 2^levels steps."""
    webs = {f"a{each}": {"allOf": [{"$ref": f"#/$defs/a{each + 1}"}] * 2} for each in range(levels)}
    defs = {**webs, f"a{levels}": {"type": "object"}}
    return {"type": "object", "allOf": [{"$ref": "#/$defs/a0"}], "$defs": defs}


async def test_given_tools_whose_schemas_take_long_when_opened_then_the_loop_goes_on_and_the_rest_is_served() -> None:
    turns = 0

    async def turning() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0.005)
            turns += 1

    async with raw_web() as web:
        odd = [{"name": f"t{number}", "inputSchema": doubling()} for number in range(40)]
        web.listing = json.dumps([OK, *odd]).encode()
        other = asyncio.ensure_future(turning())
        async with McpExecutionPlane(web.url, revision="2025-11-25") as plane:
            other.cancel()
            done = await call(plane, "ok")

    assert (done, len(plane.omitted), turns > 40) == (FINE, 40, True)
    assert all("too many steps" in why for why in plane.omitted.values())


def test_given_schemas_that_take_too_long_together_when_looked_through_then_those_that_are_left_are_not_offered() -> (
    None
):
    class Slow(ManualClock):
        """Every look at it takes four seconds."""

        looks = 0

        def now_ms(self) -> int:
            self.looks += 1
            return super().now_ms() + 4000 * self.looks

    listed = [Listed(f"t{number}", "", {"type": "object"}) for number in range(5)]
    catalogue = Catalogue(listed, Choice(), Slow())

    late = "checking the schemas of this server's tools took over 10000 ms"
    assert [spec.name for spec in catalogue.specs] == ["t0", "t1"]
    assert catalogue.omitted == {"t2": late, "t3": late, "t4": late}
