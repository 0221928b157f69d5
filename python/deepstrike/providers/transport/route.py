"""The way to an address: proxy, certificates and limits, in the HTTP library's terms."""

from __future__ import annotations

import asyncio
import os
import ssl
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from deepstrike.errors import ConfigError

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL


@dataclass(frozen=True, slots=True)
class Route:
    """What every request to one address is sent with. `ssl` is True where the library's own choice will do."""

    target: URL
    origin: str
    proxy: str | None
    ssl: ssl.SSLContext | bool
    timeout: aiohttp.ClientTimeout


async def find_route(url: str, connect: float | None) -> Route:
    """The route to `url`, as the environment says now.

    What takes a while, loading the HTTP library and the certificates, is done in a thread. Raises `ConfigError`.
    """
    if _is_quick(url):
        return _route(url, connect)
    return await asyncio.to_thread(_route, url, connect)


def _is_quick(url: str) -> bool:
    return _loaded.is_set() and (urlsplit(url).scheme != "https" or _named_file() in _contexts)


_loaded = threading.Event()
# By the state of the file that SSL_CERT_FILE names: connections can only be shared under one and the same context.
_contexts: dict[tuple[str, int] | None, ssl.SSLContext] = {}
_MOST_CONTEXTS = 8


def _route(url: str, connect: float | None) -> Route:
    import aiohttp
    from yarl import URL

    _loaded.set()
    place = urlsplit(url)
    return Route(
        target=URL(url),
        origin=f"{place.scheme}://{place.netloc}",
        proxy=_proxy_for(url),
        ssl=_context() if place.scheme == "https" else True,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect),
    )


def _proxy_for(url: str) -> str | None:
    place = urlsplit(url)
    proxies = getproxies()
    proxy = proxies.get(place.scheme) or proxies.get("all")
    return proxy if proxy and not proxy_bypass(place.netloc) else None


def _named_file() -> tuple[str, int] | None:
    """The file that `SSL_CERT_FILE` names, and when it was written. OpenSSL says nothing when it is missing."""
    named = os.environ.get("SSL_CERT_FILE")
    if not named:
        return None
    path = Path(named)
    if not path.is_file():
        raise ConfigError(f"SSL_CERT_FILE names {named!r}, which is not a file: correct or unset it")
    return named, path.stat().st_mtime_ns


def _context() -> ssl.SSLContext:
    """The system's authorities; `SSL_CERT_FILE` is honoured by OpenSSL."""
    key = _named_file()
    context = _contexts.get(key)
    if context is None:
        if len(_contexts) >= _MOST_CONTEXTS:
            _contexts.clear()
        context = _contexts.setdefault(key, ssl.create_default_context())
    return context
