"""Is somebody there? Short, keyless questions to model servers, for choosing a model and for `doctor`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_READS = 1 << 20

LOCAL_SERVERS = (("Ollama", 11434), ("llama-server", 8080), ("LM Studio", 1234))
"""Model servers that are looked for on this machine, by their usual ports."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said to `GET <base_url>/models`: an HTTP status, or None and why there was none.

    `models` are the ids it lists, in its order; None when the answer was no list of models.
    """

    status: int | None
    models: tuple[str, ...] | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A model server found on this machine."""

    name: str
    base_url: str
    models: tuple[str, ...]


def ask(base_url: str, limit: float, *, proxies: bool = True) -> Answer:
    """Ask `base_url` for its models, giving up after `limit` seconds in all. Sends no key. Never raises."""
    answers: SimpleQueue[Answer] = SimpleQueue()
    # A thread of its own, because no timeout of the socket bounds the name lookup.
    Thread(target=lambda: answers.put(_get(base_url, limit, proxies)), daemon=True).start()
    try:
        return answers.get(timeout=limit)
    except Empty:
        return Answer(None, reason=f"no answer within {limit:g} s")


def local_servers(limit: float = 0.4) -> Sequence[LocalServer]:
    """The model servers that run on this machine and list at least one model."""
    found = []
    for name, port in LOCAL_SERVERS:
        base_url = f"http://127.0.0.1:{port}/v1"
        answer = ask(base_url, limit, proxies=False)
        if answer.models:
            found.append(LocalServer(name, base_url, answer.models))
    return found


def _get(base_url: str, limit: float, proxies: bool) -> Answer:
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError
    from urllib.request import ProxyHandler, Request, build_opener

    opener = build_opener() if proxies else build_opener(ProxyHandler({}))
    try:
        request = Request(base_url.rstrip("/") + "/models", headers={"accept": "application/json"})  # noqa: S310
        with opener.open(request, timeout=limit) as response:
            return Answer(response.status, _models(response.read(_READS)))
    except HTTPError as error:
        with error:
            return Answer(error.code)
    except URLError as error:
        return Answer(None, reason=str(error.reason))
    except (OSError, ValueError, HTTPException) as error:
        return Answer(None, reason=str(error) or type(error).__name__)


def _models(body: bytes) -> tuple[str, ...] | None:
    try:
        rows = json.loads(body)["data"]
        return tuple(str(row["id"]) for row in rows)
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
