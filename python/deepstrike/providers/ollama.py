"""Ollama: models on this machine, on another one, or in its cloud."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from deepstrike.errors import ContextOverflow
from deepstrike.providers.dialects.ollama.dialect import OllamaDialect
from deepstrike.providers.dialects.ollama.options import explicit_window
from deepstrike.providers.extensions import CHAT_FIELDS, FLAG, NUMBER, TABLE, TEXT, WHOLE, Field
from deepstrike.providers.faults import Words
from deepstrike.providers.profile import Profile
from deepstrike.providers.service import ServiceProvider
from deepstrike.providers.settings import check_type
from deepstrike.providers.transport.base import Timeouts
from deepstrike.wire.policy import Price

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack

    from deepstrike.providers.service import CallOptions

_PORT = 11434
_EVERYWHERE = "0.0.0.0"  # noqa: S104 (an address that servers listen on; clients cannot go there)
_FREE = Price(0, 0, 0, 0)
_CLOUD = re.compile(r"(https://)?(www\.)?ollama\.com(/|$)", re.IGNORECASE)


def _option(kind: Field, wire_name: str) -> Field:
    return replace(kind, at=("options", wire_name))


def _stops(value: object) -> object:
    return [value] if isinstance(value, str) else value


# Source: Ollama's API document and its list of model parameters.
FIELDS: dict[str, Field] = {
    "num_ctx": _option(WHOLE, "num_ctx"),
    "temperature": _option(NUMBER, "temperature"),
    "top_p": _option(NUMBER, "top_p"),
    "top_k": _option(WHOLE, "top_k"),
    "min_p": _option(NUMBER, "min_p"),
    "seed": _option(WHOLE, "seed"),
    "stop": replace(CHAT_FIELDS["stop"], at=("options", "stop"), wire=_stops),
    "repeat_penalty": _option(NUMBER, "repeat_penalty"),
    "presence_penalty": _option(NUMBER, "presence_penalty"),
    "frequency_penalty": _option(NUMBER, "frequency_penalty"),
    "options": TABLE,
    "enable_thinking": replace(FLAG, at=("thinking", "enable")),
    "reasoning_effort": replace(TEXT, at=("thinking", "effort")),
    "think": Field((bool, str), "true, false or an effort"),
    "format": Field((str, dict), '"json" or a JSON schema'),
    "keep_alive": Field((str, int, float), "a duration such as '10m', or seconds"),
    "truncate": FLAG,
    "shift": FLAG,
    "max_output_tokens": CHAT_FIELDS["max_output_tokens"],
    "expose_reasoning": CHAT_FIELDS["expose_reasoning"],
    "extra_body": CHAT_FIELDS["extra_body"],
}
_OVERFLOW = {
    "exceeded max context length": ContextOverflow,
    "exceeds the context length": ContextOverflow,
    "exceeds maximum context length": ContextOverflow,
}

LOCAL = Profile(
    name="ollama",
    base_url=f"http://localhost:{_PORT}",
    key_variable="OLLAMA_API_KEY",
    url_variable="OLLAMA_HOST",
    dialect=OllamaDialect(),
    fields=FIELDS,
    key_needed=False,
    # The server loads a model when it is first asked, and evaluates a long prompt before its first word.
    timeouts=Timeouts(first_event=1_200.0),
)
CLOUD = replace(LOCAL, base_url="https://ollama.com", key_needed=True)


class OllamaProvider(ServiceProvider):
    """Streams from an Ollama server by its native interface.

    `model` is the name that `ollama list` shows. `base_url` defaults to `OLLAMA_HOST`, which like `base_url` may be an
    address, a host, a host with a port or a port alone, else to `http://localhost:11434`. No key is needed but for
    `https://ollama.com` (`api_key`, by default `OLLAMA_API_KEY`). Every request asks for the window of the run
    (`max_tokens`) as `num_ctx`; an explicit `num_ctx` that is smaller, or without `max_tokens`, is the run's window
    too. A prompt that the server evidently cut is told by a notice with the code `prompt_truncated`. A local model
    costs nothing. The other keywords are those of `CallOptions`.
    """

    def __init__(
        self, model: str, base_url: str | None = None, *, api_key: str | None = None, **options: Unpack[CallOptions]
    ) -> None:
        check_type("base_url", base_url, str, "an address as text")
        address = full_address(base_url or os.environ.get("OLLAMA_HOST") or LOCAL.base_url)
        profile = CLOUD if _CLOUD.match(address) else LOCAL
        super().__init__(replace(profile, words=_words(model)), api_key, model, base_url=address, **options)
        if profile is LOCAL and self.info.price is None:
            self.info = replace(self.info, price=_FREE)

    def window(self, extensions: Mapping[str, object]) -> int | None:
        """See `Provider.window`: `num_ctx`, by itself, in `options` or in `extra_body`."""
        return explicit_window({**self.info.defaults, **extensions})


def full_address(given: str) -> str:
    """The address that a host, a port, both, or an address in any of Ollama's own forms means.

    Without a scheme the port is 11434, with one it is the scheme's own. An address to listen on (0.0.0.0) is reached as
    the loopback one. A path that ends in `/api` or `/v1` is cut there: the native interface stands beside them.
    """
    text = given.strip().strip("\"'")
    if _CLOUD.match(text) and "://" not in text:
        text = f"https://{text}"
    scheme, found, rest = text.partition("://")
    if not found:
        scheme, rest = "http", text
    place, slash, path = rest.partition("/")
    path = re.sub(r"/(api|v1)/?$", "", slash + path)
    return f"{scheme}://{_place(place, with_port=not found)}{path}".rstrip("/")


def _place(place: str, *, with_port: bool) -> str:
    if place.isdecimal():
        place = f":{place}"
    if place.count(":") > 1 and "[" not in place:
        place = f"[{place}]"  # a bare IPv6 address
    host, colon, port = (place, "", "") if place.endswith("]") else place.rpartition(":")
    if not colon:
        host, port = place, str(_PORT) if with_port else ""
    host = {"": "127.0.0.1", "[::]": "[::1]"}.get(host, "127.0.0.1" if host == _EVERYWHERE else host)
    return f"{host}:{port}" if port else host


def _words(model: str) -> Words:
    pull = f"get the model with `ollama pull {model}`, or take one that `ollama list` shows"
    return Words(
        texts=_OVERFLOW,
        remedies={
            "try pulling it first": pull,
            f"model '{model}' not found".lower(): pull,
            "does not support tools": f"take a model with the capability `tools` (see `ollama show {model}`), or run "
            "without tools",
            "does not support thinking": "leave out enable_thinking, reasoning_effort and think",
        },
    )
