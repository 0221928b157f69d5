"""Probes ask without a key, give up in time and never raise."""

from __future__ import annotations

from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from socket import create_server
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from deepstrike.providers.transport import probe
from deepstrike.providers.transport.probe import Answer, LocalServer, ask, local_servers

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def answering(status: int, body: bytes, seen: list[str]) -> Iterator[str]:
    class Models(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(f"{self.path} {self.headers.get('authorization')}")
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    with HTTPServer(("127.0.0.1", 0), Models) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("status", "body", "answer"),
    [
        (200, b'{"data":[{"id":"b"},{"id":"a"}]}', Answer(200, ("b", "a"))),
        (200, b'{"data":[]}', Answer(200, ())),
        (200, b"<html>", Answer(200, None)),
        (200, b'{"data":[1]}', Answer(200, None)),
        (200, b"[" * 200_000, Answer(200, None)),
        (401, b"no key", Answer(401)),
        (500, b"", Answer(500)),
    ],
)
def test_given_an_answer_when_asked_then_it_is_told_and_no_key_was_sent(
    status: int, body: bytes, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    seen: list[str] = []
    with answering(status, body, seen) as url:
        assert ask(url, 10, proxies=False) == answer
    assert seen == ["/v1/models None"]


def test_given_several_local_servers_when_looked_for_then_those_with_models_are_found_and_a_silent_one_costs_one_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[str] = []
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with (
        answering(200, b'{"data":[{"id":"qwen3"}]}', seen) as good,
        answering(404, b"", seen) as none,
        create_server(("127.0.0.1", 0)) as silent,
    ):
        ports = [silent.getsockname()[1], *(int(url.rsplit(":", 1)[1].removesuffix("/v1")) for url in (none, good))]
        rows = [("A", ports[0], "vllm"), ("B", ports[1], "lmstudio"), ("C", ports[2], "ollama")]
        monkeypatch.setattr(probe, "LOCAL_SERVERS", rows)

        found = local_servers(1)

    assert found == [LocalServer("C", "ollama", good, ("qwen3",))]
    assert seen == ["/v1/models None"] * 2


def test_given_nobody_there_when_asked_then_the_reason_is_told() -> None:
    with create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    answer = ask(f"http://127.0.0.1:{port}", 10, proxies=False)
    assert (answer.status, answer.models, "refused" in answer.reason) == (None, None, True)


def test_given_a_server_that_never_answers_when_asked_then_it_gives_up() -> None:
    with create_server(("127.0.0.1", 0)) as server:
        answer = ask(f"http://127.0.0.1:{server.getsockname()[1]}", 0.05, proxies=False)
    assert (answer.status, answer.models) == (None, None)


@pytest.mark.parametrize("url", ["", "nonsense", "ftp://127.0.0.1", "http://[", "http://127.0.0.1:99999"])
def test_given_no_address_when_asked_then_it_does_not_raise(url: str) -> None:
    assert ask(url, 10, proxies=False).status is None
