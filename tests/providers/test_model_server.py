"""The loopback model server: what it sends, and what it refuses."""

from __future__ import annotations

import http.client
import json

import pytest
from wires import Said, decode

from deepstrike.providers.base import Finish, ToolCall
from deepstrike.stream import TextDelta, ThinkingDelta
from deepstrike.testing.server import ModelServer, Raw, Received, chat_stream, judge, refusal
from deepstrike.wire.message import Usage

USER = {"role": "user", "content": "hi"}


def post(server: ModelServer, body: bytes) -> tuple[int, dict[str, str], bytes]:
    host = server.base_url.removeprefix("http://").removesuffix("/v1")
    connection = http.client.HTTPConnection(host, timeout=10)
    try:
        connection.request("POST", "/v1/chat/completions", body)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def request(*messages: object) -> bytes:
    return json.dumps({"model": "m", "messages": messages}).encode()


def test_given_events_when_written_as_a_stream_then_they_read_back_the_same() -> None:
    call = ToolCall("c1", "add", '{"x":1,"y":"é"}')
    body = b"".join(
        chat_stream([ThinkingDelta("hm"), TextDelta("Hi "), TextDelta("there"), call, Usage(5, 6, 1, 2, 3)])
    )
    assert decode(body) == Said("Hi there", "hm", (call,), Usage(5, 6, 1, 2, 3), "tool_calls")
    assert decode(b"".join(chat_stream("a b  c\n"))).text == "a b  c\n"
    assert decode(b"".join(chat_stream([Finish("length")]))).finish == "length"


def test_given_replies_when_asked_then_they_come_in_order_and_then_the_other_one() -> None:
    def echo(received: Received) -> str:
        return str(received.body["model"])

    with ModelServer(["one", echo, refusal(429, "slow", retry_after="2")], otherwise="later") as server:
        answers = [post(server, request(USER)) for _ in range(5)]
    assert [decode(body).text for status, _, body in answers if status == 200] == ["one", "m", "later", "later"]
    status, headers, body = answers[2]
    assert (status, headers["retry-after"], json.loads(body)["error"]["message"]) == (429, "2", "slow")
    assert (server.accepted, len(server.requests), server.refused) == (5, 5, [])


def test_given_a_raw_answer_when_asked_then_these_bytes_come() -> None:
    with ModelServer([Raw([b"abc", 0.0, b"", b"def"], 201, {"content-type": "text/plain"})]) as server:
        status, headers, body = post(server, request(USER))
    assert (status, headers["content-type"], body) == (201, "text/plain", b"abcdef")


@pytest.mark.parametrize("end", ["fin", "rst"])
def test_given_an_answer_that_is_cut_when_read_then_the_client_sees_it(end: str) -> None:
    with ModelServer([Raw([b"data: x\n\n"], end=end)]) as server:  # type: ignore[arg-type]
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            post(server, request(USER))
        assert server.wait_until(lambda it: it.connections == 0)


def test_given_a_stalled_answer_when_the_server_stops_then_it_does_not_wait_for_it() -> None:
    with ModelServer([Raw([b"data: x\n\n"], end="stall")]) as server:
        host = server.base_url.removeprefix("http://").removesuffix("/v1")
        connection = http.client.HTTPConnection(host, timeout=10)
        connection.request("POST", "/v1/chat/completions", request(USER))
        connection.getresponse()
    connection.close()


@pytest.mark.parametrize(
    "body",
    [b"{", b"[]", b'{"model":"m","messages":[NaN]}', b'{"model":"m","messages":["\\ud83d"]}', b'{"model":"\xff"}'],
)
def test_given_a_body_that_is_no_strict_json_when_posted_then_it_is_refused_and_takes_no_reply(body: bytes) -> None:
    with ModelServer(["first"]) as server:
        assert post(server, body)[0] == 400
        assert decode(post(server, request(USER))[2]).text == "first"
    assert "strict JSON" in server.refused[0]


def call(call_id: object = "c1", name: object = "add", arguments: object = "{}") -> dict[str, object]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def assistant(*calls: object, content: object = None) -> dict[str, object]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def result(call_id: str = "c1", content: object = "r") -> dict[str, object]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


GOOD = [
    [USER],
    [USER, assistant(call()), result()],
    [USER, assistant(call("a"), call("b")), result("b"), result("a"), USER],
    [USER, assistant(call()), result(), assistant(call()), result()],
    [{"role": "system", "content": "s"}, USER, {"role": "assistant", "content": "a"}, USER],
]
BAD = {
    "no messages": [],
    "no result": [USER, assistant(call())],
    "a result missing": [USER, assistant(call("a"), call("b")), result("a"), USER],
    "a result too many": [USER, assistant(call()), result(), result()],
    "a result without its call": [USER, result()],
    "a result behind another message": [USER, assistant(call()), USER, result()],
    "an empty id": [USER, assistant(call("")), result("")],
    "a bad name": [USER, assistant(call(name="a.b")), result()],
    "arguments that are no JSON": [USER, assistant(call(arguments='{"x":')), result()],
    "arguments as an object": [USER, assistant(call(arguments={})), result()],
    "an empty list of calls": [USER, assistant()],
    "neither content nor calls": [USER, {"role": "assistant", "content": None}],
    "no such role": [{"role": "bot", "content": "x"}],
    "a result without content": [USER, assistant(call()), result(content=None)],
}


@pytest.mark.parametrize("messages", GOOD)
def test_given_a_sound_conversation_when_judged_then_it_passes(messages: list[object]) -> None:
    assert judge({"model": "m", "messages": messages}) is None


@pytest.mark.parametrize("messages", BAD.values(), ids=BAD)
def test_given_a_broken_conversation_when_judged_then_it_is_refused(messages: list[object]) -> None:
    assert judge({"model": "m", "messages": messages}) is not None


def test_given_a_server_that_does_not_judge_when_another_dialect_is_spoken_then_only_json_is_asked_for() -> None:
    with ModelServer([Raw([b"fine"])], judged=False) as server:
        assert post(server, b'{"contents":[]}')[::2] == (200, b"fine")
        assert post(server, b"no json")[0] == 400
        assert [one.raw for one in server.requests] == [b'{"contents":[]}']
