"""Is somebody there? Short, keyless questions to model servers, for choosing a model and for `doctor`."""

from __future__ import annotations

import json
from concurrent.futures import Future, wait
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_READS = 1 << 20

LOCAL_SERVERS: Final = (
    ("Ollama", 11434, "ollama"),
    ("llama-server", 8080, "llamacpp"),
    ("LM Studio", 1234, "lmstudio"),
    ("vLLM", 8000, "vllm"),
)
"""Model servers that are looked for on this machine: name, usual port, and provider as in `provider:name`."""


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
    """A model server found on this machine: `provider` and `address` say how to speak to it."""

    name: str
    provider: str
    address: str
    models: tuple[str, ...]


def ask(base_url: str, limit: float, *, proxies: bool = True) -> Answer:
    """Ask `base_url` for its models, giving up after `limit` seconds in all. Sends no key. Never raises."""
    return _answers([base_url], limit, proxies)[0]


def local_servers(limit: float = 0.4) -> Sequence[LocalServer]:
    """The model servers that run on this machine and list at least one model.

    All are asked at once, for at most `limit` seconds in all; they are asked for their models, and nothing else.
    """
    addresses = [f"http://127.0.0.1:{port}/v1" for _name, port, _provider in LOCAL_SERVERS]
    rows = zip(LOCAL_SERVERS, addresses, _answers(addresses, limit, proxies=False), strict=True)
    return [
        LocalServer(name, provider, address, answer.models)
        for (name, _port, provider), address, answer in rows
        if answer.models
    ]


def _answers(addresses: Sequence[str], limit: float, proxies: bool) -> list[Answer]:
    """What each says, within `limit` seconds for all of them."""
    asked: list[Future[Answer]] = [Future() for _ in addresses]
    for address, future in zip(addresses, asked, strict=True):
        # A thread of its own, because no timeout of the socket bounds the name lookup.
        Thread(target=_tell, args=(future, address, limit, proxies), daemon=True).start()
    wait(asked, timeout=limit)
    late = Answer(None, reason=f"no answer within {limit:g} s")
    return [future.result() if future.done() else late for future in asked]


def _tell(future: Future[Answer], address: str, limit: float, proxies: bool) -> None:
    future.set_result(_get(address, limit, proxies))


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
