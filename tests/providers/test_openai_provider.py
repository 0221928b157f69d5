"""OpenAIProvider over a real loopback socket."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import subprocess
import sys
import threading
import warnings
from typing import TYPE_CHECKING

import pytest
from wires import Said, ask, collect, event, listen, put_together, stream

from deepstrike.errors import (
    BadRequest,
    ConfigError,
    ProviderError,
    Stalled,
    Truncated,
    Unauthorized,
    Unreachable,
)
from deepstrike.providers.base import Finish, ModelEvent, ModelRequest, ToolCall
from deepstrike.providers.openai import OpenAIProvider
from deepstrike.providers.retry import RetryConfig
from deepstrike.providers.transport.base import Timeouts
from deepstrike.providers.transport.breaker import CircuitBreaker
from deepstrike.stream import RetryEvent, TextDelta
from deepstrike.testing.server import ModelServer, Raw, refusal
from deepstrike.wire.message import AssistantBlock, CallBlock, ResultBlock, Text, ToolSpec, Usage, UserBlock

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = "sk-test-0123456789abcdef"
ONCE = RetryConfig(max_retries=0)
QUICK = RetryConfig(max_retries=2, base_delay=0.001)


def provider(server: ModelServer, retry: RetryConfig = ONCE, timeouts: Timeouts | None = None) -> OpenAIProvider:
    """A provider with a breaker of its own: port numbers come back, and a shared breaker would remember them."""
    breaker = CircuitBreaker(retry)
    return OpenAIProvider(
        KEY, "test", base_url=server.base_url, retry_config=retry, circuit_breaker=breaker, timeouts=timeouts
    )


async def said(model: OpenAIProvider, request: ModelRequest | None = None) -> Said:
    return put_together(await collect(model.stream(request or ask())))


async def test_given_a_model_server_when_asked_then_text_calls_and_usage_come_over_the_socket() -> None:
    reply: list[ModelEvent] = [
        TextDelta("Let me see."),
        ToolCall("c1", "add", '{"x":17,"y":28}'),
        Usage(20, 9, cached=4, reasoning=2),
    ]
    async with ModelServer([reply]) as server:
        model = provider(server)
        assert await said(model) == Said(
            "Let me see.", "", (ToolCall("c1", "add", '{"x":17,"y":28}'),), Usage(20, 9, 4, 0, 2), "tool_calls"
        )
        await model.aclose()
    request = server.requests[0]
    assert (request.path, request.headers["authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    assert request.body["stream_options"] == {"include_usage": True}


async def test_given_a_tool_turn_when_its_result_goes_back_then_the_judge_is_content() -> None:
    turns = (
        UserBlock((Text("17 + 28?"),)),
        AssistantBlock((CallBlock("c1", "math.add", '{"x":17,"y":28}'),)),
        ResultBlock("c1", "math.add", (Text("45"),)),
    )
    request = ModelRequest("s", "k", turns, (ToolSpec("math.add", "", '{"type":"object"}'),), {})
    async with ModelServer(["45"]) as server:
        model = provider(server)
        assert (await said(model, request)).text == "45"
        await model.aclose()
    assert server.refused == []


async def test_given_one_provider_when_it_asks_again_then_the_connection_is_kept() -> None:
    async with ModelServer() as server:
        model = provider(server)
        for _ in range(5):
            await said(model)
            assert server.connections == 1
        await model.aclose()
        assert await asyncio.to_thread(server.wait_until, lambda it: it.connections == 0)
        assert (await said(model)).text == "ok"
        await model.aclose()


async def test_given_writes_that_cut_everything_when_read_then_the_answer_is_the_same() -> None:
    body = stream(event({"content": "你好🦀é"}))
    pieces: list[bytes | float] = [body[i : i + 1] for i in range(len(body))]
    async with ModelServer([Raw(pieces)]) as server:
        model = provider(server)
        assert await said(model) == Said("你好🦀é", finish="stop")
        await model.aclose()


async def test_given_a_first_delta_when_nothing_follows_then_it_is_shown_at_once() -> None:
    first = event({"content": "one "}).replace(b"\n", b"\r\n")
    async with ModelServer([Raw([first], end="stall")]) as server:
        model = provider(server)
        events = model.stream(ask())
        assert await anext(events) == TextDelta("one ")
        await events.aclose()  # type: ignore[attr-defined]
        await model.aclose()


@pytest.mark.parametrize("end", ["complete", "fin", "rst"])
@pytest.mark.parametrize("text", [True, False])
async def test_given_an_answer_that_breaks_off_when_read_then_it_is_never_a_finished_one(end: str, text: bool) -> None:
    cut = Raw([event({"content": "The cap"} if text else {"role": "assistant"})], end=end)  # type: ignore[arg-type]
    async with ModelServer([cut], otherwise="The capital is X") as server:
        model = provider(server, QUICK)
        seen: list[ModelEvent] = []
        if text and end != "rst":
            with pytest.raises(Truncated):
                await listen(model.stream(ask()), seen)
            assert server.accepted == 1
        else:  # a reset may overtake the text; either nothing was shown and the whole answer comes, or it is an error
            try:
                await listen(model.stream(ask()), seen)
            except Truncated:
                assert seen == [TextDelta("The cap")]
            else:
                shown = "".join(one.delta for one in seen if isinstance(one, TextDelta))
                assert (shown, server.accepted) == ("The capital is X", 2)
        await model.aclose()


async def test_given_a_finish_when_the_connection_breaks_behind_it_then_the_answer_counts() -> None:
    body = event({"content": "fine"}) + event({}, "stop")
    async with ModelServer([Raw([body], end="fin")]) as server:
        model = provider(server)
        events = model.stream(ask())
        first = await anext(events)
        # Everything has arrived, the break included, before the rest is asked for.
        assert await asyncio.to_thread(server.wait_until, lambda it: it.connections == 0)
        await asyncio.sleep(0)
        rest = [one async for one in events]
        assert [first, *rest] == [TextDelta("fine"), Finish("stop")]
        await model.aclose()


async def test_given_a_dead_stream_when_progress_passes_then_it_ends_as_stalled() -> None:
    pings: list[bytes | float] = [event({"content": "a"})]
    for _ in range(100):
        pings += [0.02, b": keepalive\n\n"]
    async with ModelServer([Raw(pings)]) as server:
        model = provider(server, timeouts=Timeouts(progress=0.1))
        with pytest.raises(Stalled, match=r"no progress for 0\.1 s"):
            await said(model)
        assert await asyncio.to_thread(server.wait_until, lambda it: it.connections == 0)
        await model.aclose()


async def test_given_a_server_that_never_answers_when_the_first_event_is_due_then_it_ends_as_stalled() -> None:
    with ModelServer() as server:

        def hang(_request: object) -> str:
            released.wait(10)
            return "late"

        released = threading.Event()
        server._otherwise = hang
        model = provider(server, timeouts=Timeouts(first_event=0.1))
        with pytest.raises(Stalled, match=r"within 0\.1 s"):
            await said(model)
        released.set()
        await model.aclose()


@pytest.mark.parametrize("at", range(4))
async def test_given_a_running_stream_when_dropped_at_any_event_then_the_connection_is_closed(at: int) -> None:
    async with ModelServer([Raw([event({"content": one}) for one in "abcd"], end="stall")]) as server:
        model = provider(server)
        events = model.stream(ask())
        for _ in range(at + 1):
            await anext(events)
        await events.aclose()  # type: ignore[attr-defined]
        assert await asyncio.to_thread(server.wait_until, lambda it: it.connections == 0)
        await model.aclose()


async def test_given_a_running_stream_when_its_task_is_cancelled_then_the_connection_is_closed() -> None:
    async with ModelServer([Raw([event({"content": "a"})], end="stall")]) as server:
        model = provider(server)
        task = asyncio.ensure_future(collect(model.stream(ask())))
        assert await asyncio.to_thread(server.wait_until, lambda it: it.accepted == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.wait_until, lambda it: it.connections == 0)
        await model.aclose()
    assert [one for one in asyncio.all_tasks() if one is not asyncio.current_task()] == []


def test_given_one_provider_when_used_in_two_event_loops_then_both_work_and_nothing_is_left_open() -> None:
    with ModelServer() as server, warnings.catch_warnings():
        warnings.simplefilter("error")
        model = provider(server)
        for _ in range(3):
            assert asyncio.run(said(model)).text == "ok"
            assert server.wait_until(lambda it: it.connections == 0)
        gc.collect()


def test_given_one_provider_when_used_in_several_threads_at_once_then_all_are_answered() -> None:
    with ModelServer() as server:
        model = provider(server)
        answers: list[str] = []

        def work() -> None:
            answers.append(asyncio.run(said(model)).text)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == ["ok"] * 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_given_a_provider_in_use_when_the_process_forks_then_parent_and_child_go_on() -> None:
    program = f"""
import asyncio, os, sys
from deepstrike.providers.openai import OpenAIProvider
from deepstrike.testing.server import ModelServer
sys.path.insert(0, {os.path.dirname(__file__)!r})
from wires import ask, collect, put_together

def text(model):
    async def run():
        return put_together(await collect(model.stream(ask()))).text
    return run

async def parent(model, url):
    first = await text(model)()
    child = os.fork()
    if child == 0:
        asyncio.events._set_running_loop(None)
        ok = asyncio.run(text(model)()) == "ok"
        os._exit(0 if ok else 1)
    _, status = await asyncio.to_thread(os.waitpid, child, 0)
    return first, await text(model)(), status

with ModelServer() as server:
    model = OpenAIProvider("k", "m", base_url=server.base_url)
    print(asyncio.run(parent(model, server.base_url)), server.accepted)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout.strip(), done.returncode) == ("('ok', 'ok', 0) 3", 0), done.stderr


async def test_given_a_large_history_when_sent_then_no_warning_is_made_and_it_arrives_whole() -> None:
    long = "é" * 2_000_000
    async with ModelServer() as server:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = provider(server)
            assert (await said(model, ask(long))).text == "ok"
            await model.aclose()
    messages = server.requests[0].body["messages"]
    assert isinstance(messages, list)
    assert messages[1]["content"] == long


async def test_given_retries_over_the_socket_when_the_server_recovers_then_the_answer_comes_once() -> None:
    async with ModelServer([refusal(503), refusal(429, retry_after_ms="1"), "fine"]) as server:
        model = provider(server, QUICK)
        events = await collect(model.stream(ask()))
        await model.aclose()
    assert [one.attempt for one in events if isinstance(one, RetryEvent)] == [1, 2]
    assert put_together(one for one in events if not isinstance(one, RetryEvent)).text == "fine"
    assert server.requests[0].raw == server.requests[1].raw == server.requests[2].raw


async def test_given_nobody_listening_when_asked_then_the_error_names_the_address() -> None:
    with ModelServer() as server:
        url = server.base_url
    model = OpenAIProvider(KEY, "m", base_url=url, retry_config=ONCE, circuit_breaker=CircuitBreaker(ONCE))
    with pytest.raises(Unreachable, match=url.removesuffix("/v1")) as caught:
        await said(model)
    assert caught.value.retryable
    await model.aclose()


async def test_given_a_limit_on_calls_when_many_are_made_then_no_more_are_in_flight() -> None:
    most, now, lock = [0], [0], threading.Lock()

    async with ModelServer() as server:
        model = OpenAIProvider(KEY, "m", base_url=server.base_url, max_concurrency=2)
        other = OpenAIProvider(KEY, "n", base_url=server.base_url, max_concurrency=2)

        async def one(which: OpenAIProvider) -> None:
            async for got in which.stream(ask()):
                if isinstance(got, TextDelta):
                    with lock:
                        now[0] += 1
                        most[0] = max(most[0], now[0])
                    await asyncio.sleep(0)
                    with lock:
                        now[0] -= 1

        await asyncio.gather(*(one(model if n % 2 else other) for n in range(12)))
        assert (server.accepted, most[0] <= 2, server.connections <= 4) == (12, True, True)
        await model.aclose()
        await other.aclose()


# Secrets


ECHOES: dict[str, Callable[[], Raw]] = {
    "an error object": lambda: refusal(401, f"the key {KEY} is wrong"),
    "an error inside the stream": lambda: Raw([b'data: {"error":{"message":"key %b"}}\n\n' % KEY.encode()]),
    "a page": lambda: Raw([b"<html>" + KEY.encode()], 200, {"content-type": "text/html"}),
    "an error page": lambda: Raw([KEY.encode() * 3], 500, {"content-type": "text/plain"}),
    "a line that is no JSON": lambda: Raw([b"data: oops " + KEY.encode() + b"\n\n"]),
}


@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES)
async def test_given_a_server_that_echoes_the_key_when_it_fails_then_the_key_is_nowhere(
    echo: Callable[[], Raw], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with ModelServer(otherwise=echo()) as server:
        model = provider(server, RetryConfig(max_retries=1, base_delay=0.001))
        events: list[ModelEvent] = []
        with pytest.raises(ProviderError) as caught:
            await listen(model.stream(ask()), events)
        await model.aclose()
    shown = f"{caught.value!s} {caught.value!r} {caught.value.__cause__!r} {events!r} {caplog.text} {model!r}"
    assert KEY not in shown
    assert caught.value.__context__ is None or KEY not in repr(caught.value.__context__)


async def test_given_a_secret_in_a_header_of_the_users_own_when_echoed_then_it_is_masked_too() -> None:
    secret = 'tok"en/with+odd chars'
    async with ModelServer([refusal(403, f"bad {secret}")]) as server:
        model = OpenAIProvider(base_url=server.base_url, api_key=KEY, headers={"X-Gateway": secret}, retry_config=ONCE)
        with pytest.raises(Unauthorized) as caught:
            await said(model)
        await model.aclose()
    assert secret not in str(caught.value)
    assert server.requests[0].headers["x-gateway"] == secret


# Construction


def test_given_no_key_when_the_address_is_the_vendors_then_the_error_names_the_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    for empty in (None, ""):
        with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
            OpenAIProvider(empty)


async def test_given_no_key_when_the_address_is_another_then_no_authorization_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    async with ModelServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url + "/")
        model = OpenAIProvider(model="llama")
        await said(model)
        await model.aclose()
    assert "authorization" not in server.requests[0].headers


async def test_given_the_usual_variables_when_nothing_is_passed_then_they_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with ModelServer() as server:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        model = OpenAIProvider()
        await said(model)
        await model.aclose()
    assert (model.info.id, server.requests[0].headers["authorization"]) == ("gpt-5-mini", f"Bearer {KEY}")


async def test_given_a_base_url_with_a_query_when_asked_then_the_path_goes_before_it() -> None:
    async with ModelServer() as server:
        model = OpenAIProvider(KEY, "m", base_url=server.base_url + "/?api-version=1")
        await said(model)
        await model.aclose()
    assert server.requests[0].path == "/v1/chat/completions?api-version=1"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"model": ""}, "model"),
        ({"base_url": "model.test/v1"}, "base_url"),
        ({"base_url": "ftp://model.test"}, "base_url"),
        ({"base_url": "http://"}, "base_url"),
        ({"base_url": "http://model.test:99999/v1"}, "base_url"),
        ({"base_url": "http://user:pass@model.test/v1"}, "base_url"),
        ({"api_key": "sk-\n"}, None),
        ({"api_key": "sk-a\nb"}, "API key"),
        ({"api_key": "sk-…"}, "API key"),
        ({"headers": {"x": "a\r\nb: c"}}, "headers"),
        ({"headers": {"": "a"}}, "headers"),
        ({"headers": {"x": 5}}, "headers"),
        ({"max_concurrency": 0}, "max_concurrency"),
        ({"max_concurrency": True}, "max_concurrency"),
    ],
)
def test_given_a_wrong_argument_when_constructed_then_the_error_names_it(
    arguments: dict[str, object], word: str | None
) -> None:
    given: dict[str, object] = {"api_key": KEY, **arguments}
    if word is None:
        OpenAIProvider(**given)  # type: ignore[arg-type]
        return
    with pytest.raises(ConfigError, match=word) as caught:
        OpenAIProvider(**given)  # type: ignore[arg-type]
    assert "sk-" not in str(caught.value)


@pytest.mark.parametrize("wrong", [0, -1, True, "5", float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["connect", "first_event", "idle", "progress"])
def test_given_a_wrong_limit_when_constructed_then_the_error_names_it(name: str, wrong: object) -> None:
    with pytest.raises(ConfigError, match=name):
        Timeouts(**{name: wrong})  # type: ignore[arg-type]


def test_given_a_provider_when_shown_then_the_key_is_not() -> None:
    model = OpenAIProvider(KEY, "gpt-5-mini", base_url=f"https://model.test/{KEY}/v1")
    assert repr(model) == "OpenAIProvider(model='gpt-5-mini', base_url='https://model.test/***/v1')"


# Proxies and certificates


async def test_given_a_proxy_variable_when_asked_then_the_request_goes_through_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with ModelServer() as proxy:
        monkeypatch.setenv("http_proxy", proxy.base_url.removesuffix("/v1"))
        monkeypatch.setenv("no_proxy", "")
        model = OpenAIProvider(KEY, "m", base_url="http://model.test/v1")
        assert (await said(model)).text == "ok"
        await model.aclose()
        assert proxy.requests[0].path == "http://model.test/v1/chat/completions"

        monkeypatch.setenv("no_proxy", "model.test,127.0.0.1")
        direct = OpenAIProvider(KEY, "m", base_url=proxy.base_url)
        await said(direct)
        await direct.aclose()
        assert proxy.requests[1].path == "/v1/chat/completions"


async def test_given_a_missing_certificate_file_when_asked_then_the_error_names_the_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/ca.pem")
    model = OpenAIProvider(KEY, "m", base_url="https://127.0.0.1:9/v1")
    with pytest.raises(ConfigError, match="SSL_CERT_FILE"):
        await said(model)


def test_given_the_package_when_imported_and_a_provider_made_then_no_http_library_is_loaded() -> None:
    program = (
        "import sys; from deepstrike.providers import OpenAIProvider; OpenAIProvider('k'); "
        "print([name for name in ('aiohttp', 'pydantic', 'yarl') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() == "[]", done.stderr


async def test_given_a_refused_request_when_the_judge_is_right_then_the_message_arrives() -> None:
    turns = (UserBlock((Text("a"),)), AssistantBlock((CallBlock("c1", "add", "{}"),)), UserBlock((Text("b"),)))
    async with ModelServer() as server:
        model = provider(server)
        with pytest.raises(BadRequest, match="without a result"):
            await said(model, ModelRequest("", "", turns, (), {}))
        await model.aclose()
    assert json.loads(server.requests[0].raw)["model"] == "test"
