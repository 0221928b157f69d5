"""Certificates: a private authority is accepted when SSL_CERT_FILE names it, and only then."""

from __future__ import annotations

import asyncio
import gc
import shutil
import ssl
import subprocess
import threading
import warnings
from typing import TYPE_CHECKING

import pytest
from wires import ask, collect, event, put_together, stream

from deepstrike.errors import Unreachable
from deepstrike.providers.openai import OpenAIProvider
from deepstrike.providers.retry import RetryConfig
from deepstrike.providers.transport.breaker import CircuitBreaker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OPENSSL = shutil.which("openssl")
BODY = stream(event({"content": "safe"}))
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n" % len(BODY)

pytestmark = pytest.mark.skipif(OPENSSL is None, reason="no openssl to make a certificate with")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run(
        [str(OPENSSL), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *files, *names],
        check=True,
        capture_output=True,
    )
    return folder


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.split(b":")[1]))
            writer.write(HEAD + BODY)
            await writer.drain()
    except (ConnectionError, ssl.SSLError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


@pytest.fixture
def address(certificate: Path) -> Iterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    loop, ready, ports = asyncio.new_event_loop(), threading.Event(), list[int]()
    loop.set_exception_handler(lambda _loop, _context: None)
    stop = asyncio.Event()

    async def serve() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
        ports.append(server.sockets[0].getsockname()[1])
        ready.set()
        await stop.wait()
        server.close()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert ready.wait(10)
    yield f"https://127.0.0.1:{ports[0]}/v1"
    loop.call_soon_threadsafe(stop.set)
    thread.join()
    loop.close()


def provider(address: str) -> OpenAIProvider:
    once = RetryConfig(max_retries=0)
    return OpenAIProvider("k", "m", base_url=address, retry_config=once, circuit_breaker=CircuitBreaker(once))


def test_given_a_private_authority_when_the_variable_names_it_then_the_answer_comes_and_nothing_is_left_open(
    address: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
    model = provider(address)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            assert put_together(asyncio.run(collect(model.stream(ask())))).text == "safe"
        gc.collect()


def test_given_a_private_authority_when_nothing_names_it_then_the_error_says_how_to(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with pytest.raises(Unreachable, match="SSL_CERT_FILE") as caught:
        asyncio.run(collect(provider(address).stream(ask())))
    assert not caught.value.retryable
