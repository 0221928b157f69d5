"""Connections shared by all providers of a loop, whoever makes, drops or closes one."""

from __future__ import annotations

import asyncio
import gc
import logging
import ssl
import subprocess
import sys
import threading
import warnings
from typing import TYPE_CHECKING

import aiohttp
import pytest
from wires import ask, collect, put_together

from deepstrike.providers.openai import OpenAIProvider
from deepstrike.providers.retry import RetryConfig
from deepstrike.providers.transport import route
from deepstrike.providers.transport.breaker import CircuitBreaker
from deepstrike.providers.transport.http import _sessions
from deepstrike.providers.transport.sessions import SharedSessions
from deepstrike.testing.server import ModelServer

if TYPE_CHECKING:
    from collections.abc import Iterator

ONCE = RetryConfig(max_retries=0)


def provider(server: ModelServer, key: str = "k") -> OpenAIProvider:
    return OpenAIProvider(key, "m", base_url=server.base_url, retry_config=ONCE, circuit_breaker=CircuitBreaker(ONCE))


async def text(model: OpenAIProvider) -> str:
    return put_together(await collect(model.stream(ask()))).text


@pytest.fixture(autouse=True)
def silence(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing may be logged or warned of in any of these tests, also when the last of it is collected."""
    caplog.set_level(logging.WARNING)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        yield
        gc.collect()
    assert [str(one.message) for one in warned] == []
    assert [record.getMessage() for record in caplog.records] == []


async def test_given_a_provider_for_every_request_when_each_is_dropped_then_one_connection_serves_them_all() -> None:
    async with ModelServer() as server:
        for _ in range(20):
            assert await text(provider(server)) == "ok"
            assert server.connections == 1
        gc.collect()
        await asyncio.sleep(0)
        assert len([key for key in _sessions._places if key[0] is asyncio.get_running_loop()]) == 1


async def test_given_providers_with_keys_of_their_own_when_they_share_a_connection_then_each_sends_its_own() -> None:
    async with ModelServer() as server:
        await text(provider(server, "key-one"))
        await text(provider(server, "key-two"))
        assert server.connections == 1
    assert [one.headers["authorization"] for one in server.requests] == ["Bearer key-one", "Bearer key-two"]


async def test_given_a_call_in_flight_when_another_provider_is_closed_then_it_goes_on() -> None:
    async with ModelServer() as server:
        one, other = provider(server), provider(server)
        await text(other)
        events = one.stream(ask())
        first = await anext(events)
        await other.aclose()
        assert put_together([first, *await collect(events)]).text == "ok"
        assert await text(other) == "ok"
        await one.aclose()
        assert server.connections == 1
        await other.aclose()
        assert await asyncio.to_thread(server.wait_until, lambda it: it.connections == 0)


async def test_given_providers_that_were_dropped_when_the_last_one_is_closed_then_so_are_the_connections() -> None:
    async with ModelServer() as server:
        await text(provider(server))
        gc.collect()
        last = provider(server)
        await text(last)
        await last.aclose()
        assert await asyncio.to_thread(server.wait_until, lambda it: it.connections == 0)


def test_given_a_provider_in_another_loop_when_one_is_closed_then_the_other_keeps_its_connection() -> None:
    with ModelServer() as server:
        model = provider(server)
        other = asyncio.new_event_loop()
        assert other.run_until_complete(text(model)) == "ok"

        async def use_and_close() -> None:
            await text(model)
            await model.aclose()

        asyncio.run(use_and_close())
        assert other.run_until_complete(text(model)) == "ok"
        assert server.connections == 1
        other.run_until_complete(other.shutdown_asyncgens())
        other.close()
        assert server.wait_until(lambda it: it.connections == 0)


def test_given_loops_that_end_when_they_do_then_nothing_of_them_is_kept() -> None:
    before = set(_sessions._places)
    with ModelServer() as server:
        asyncio.run(text(provider(server)))
    assert set(_sessions._places) - before == set()


class Loops:
    """Runs loops that are closed without a word to their generators."""

    def __init__(self) -> None:
        self.sessions = SharedSessions(aiohttp.ClientSession, idle=60)

    def ask(self, user: object) -> None:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(self.sessions.get("http://model.test", user))
        loop.close()


def test_given_loops_that_are_closed_unprepared_when_another_comes_then_they_are_forgotten_silently() -> None:
    loops, user = Loops(), SharedSessions(aiohttp.ClientSession, idle=60)
    for _ in range(5):
        loops.ask(user)
        assert len(loops.sessions._places) == 1
    (place,) = loops.sessions._places.values()
    asyncio.run(place.session.close())


async def test_given_an_origin_that_nobody_uses_when_another_is_opened_later_then_its_session_is_closed() -> None:
    sessions, user, gone = SharedSessions(aiohttp.ClientSession, idle=0), Loops(), Loops()
    kept = await sessions.get("http://kept.test", user)
    left = await sessions.get("http://left.test", gone)
    assert await sessions.get("http://left.test", user) is left
    await sessions.release(user)
    assert (kept.closed, left.closed) == (True, False)
    del gone
    kept = await sessions.get("http://kept.test", user)
    assert (kept.closed, left.closed) == (False, True)
    await sessions.release(user)
    assert sessions._places == {}


def test_given_the_first_request_of_a_process_when_made_then_the_http_library_is_not_loaded_on_the_loop() -> None:
    program = """
import asyncio, sys, threading
from deepstrike.providers.openai import OpenAIProvider
from deepstrike.testing.server import ModelServer
from deepstrike import RuntimeOptions, RuntimeRunner

class Spy:
    def find_spec(self, name, path, target=None):
        if name in ("aiohttp", "aiohttp.client", "aiohttp.connector"):
            found.append((name, threading.current_thread() is threading.main_thread()))

found = []
sys.meta_path.insert(0, Spy())

async def main(url):
    for _ in range(2):
        print((await RuntimeRunner(RuntimeOptions(provider=OpenAIProvider("k", base_url=url))).run("x")).text)

with ModelServer() as server:
    asyncio.run(main(server.base_url))
print(found)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    names = ["aiohttp", "aiohttp.client", "aiohttp.connector"]
    assert done.stdout.splitlines() == ["ok", "ok", str([(name, False) for name in names])], done.stderr


async def test_given_an_https_address_when_first_asked_then_certificates_are_read_in_a_thread_and_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    where: list[bool] = []
    make = ssl.create_default_context

    def watched() -> ssl.SSLContext:
        where.append(threading.current_thread() is threading.main_thread())
        return make()

    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setattr(route, "_contexts", {})
    monkeypatch.setattr(ssl, "create_default_context", watched)
    one = await route.find_route("https://model.test/v1", 10)
    other = await route.find_route("https://model.test/v1/chat", None)
    assert one.ssl is other.ssl
    assert (one.origin, where) == ("https://model.test", [False])
