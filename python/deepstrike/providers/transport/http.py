"""The transport over aiohttp, which is imported on the first request."""

from __future__ import annotations

import asyncio
import io
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from deepstrike.errors import ProviderError, Truncated, Unreachable
from deepstrike.providers.transport.route import find_route
from deepstrike.providers.transport.sessions import SharedSessions

if TYPE_CHECKING:
    from collections.abc import Mapping

    import aiohttp

    from deepstrike.providers.redact import Mask
    from deepstrike.providers.transport.base import Answer
    from deepstrike.providers.transport.route import Route

# aiohttp warns about larger bodies given as bytes; a file object goes out in pieces.
_PLAIN_BODY: Final = 512 * 1024
_KEEP_ALIVE_SECONDS: Final = 60
_READ_AHEAD: Final = 256 * 1024


class HttpTransport:
    """POSTs to one address, over connections that all transports of the loop share.

    Proxies come from the usual variables, certificates from `SSL_CERT_FILE`, both read before the first request.
    """

    def __init__(self, url: str, headers: Mapping[str, str], connect: float | None, mask: Mask) -> None:
        self._url = url
        self._headers = dict(headers)
        self._connect = connect
        self._mask = mask
        self._route: Route | None = None

    async def post(self, body: bytes) -> Answer:
        """Send one request; redirects are not followed."""
        route = self._route
        if route is None:
            route = self._route = await find_route(self._url, self._connect)
        session = await _sessions.get(route.origin, self)
        try:
            response = await session.post(
                route.target,
                data=body if len(body) <= _PLAIN_BODY else io.BytesIO(body),
                headers=self._headers,
                proxy=route.proxy,
                ssl=route.ssl,
                timeout=route.timeout,
                allow_redirects=False,
            )
        except (OSError, ValueError, asyncio.TimeoutError, _client_error()) as fault:
            raise self._unreachable(fault) from None
        return HttpAnswer(response, self._mask)

    async def aclose(self) -> None:
        """Close the connections of the running loop that no other transport uses."""
        await _sessions.release(self)

    def _unreachable(self, fault: BaseException) -> ProviderError:
        import aiohttp

        place = urlsplit(self._url)
        where = self._mask(f"{place.scheme}://{place.hostname}" + (f":{place.port}" if place.port else ""))
        if isinstance(fault, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError):
            return Unreachable(
                f"the certificate of {where} was not accepted: {self._mask(str(fault))} (a private authority goes into "
                "a file named by SSL_CERT_FILE)",
                retryable=False,
            )
        if isinstance(fault, asyncio.TimeoutError):
            return Unreachable(f"no connection to {where} within {self._connect:g} s; check base_url and the network")
        what = self._mask(str(fault)) or type(fault).__name__
        return Unreachable(f"no answer from {where}: {what} (check base_url, the network and the proxy settings)")


class HttpAnswer:
    """An answer over aiohttp."""

    __slots__ = ("_mask", "_response", "headers", "status")

    def __init__(self, response: aiohttp.ClientResponse, mask: Mask) -> None:
        self._response = response
        self._mask = mask
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    async def read(self) -> bytes:
        """The next bytes. Those that came before a break are still given out, then `Truncated` is raised."""
        content = self._response.content
        try:
            return await content.readany()
        except (OSError, _client_error()) as fault:
            # aiohttp refuses to hand out what it had buffered when the break came.
            left = b"".join(content._buffer)
            content._buffer.clear()
            if left:
                return left
            what = self._mask(str(fault)) or type(fault).__name__
            raise Truncated(f"the connection broke in mid-answer: {what} (ask again)") from None

    async def settle(self, limit: float) -> None:
        """Read on to the end of the body, if it comes in time."""
        content = self._response.content
        if content.is_eof():
            return
        timer = asyncio.get_running_loop().call_later(limit, self._response.close)
        try:
            while await content.readany():
                pass
        except (OSError, _client_error()):
            return
        finally:
            timer.cancel()

    def close(self) -> None:
        """Give the connection back if the body was read to its end, else close it."""
        self._response.close()


def _client_error() -> type[Exception]:
    import aiohttp

    return aiohttp.ClientError


def _open() -> aiohttp.ClientSession:
    import aiohttp

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
        read_bufsize=_READ_AHEAD,
    )


_sessions: Final = SharedSessions(_open, _KEEP_ALIVE_SECONDS)
