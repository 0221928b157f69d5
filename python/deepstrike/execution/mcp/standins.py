"""Answers that are made here where none came: the client ends the one request with it, and nothing else."""

from __future__ import annotations

import json
import secrets
from typing import Final

import httpx2

from deepstrike.execution.mcp.faults import Broken

GIVEN_UP: Final = "given up"
_CODE: Final = -32000
_UNSENT: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)
"""With these, not a byte of the request has left."""


class StandIns:
    """Told from a server's own errors by a mark that no server knows."""

    def __init__(self) -> None:
        self._mark = secrets.token_hex(16)

    def failed(self, request: httpx2.Request, error: Exception) -> httpx2.Response:
        """In place of an answer that could not be had or read."""
        return self.broken(request, f"{type(error).__name__}: {error}", begun=not unsent(error))

    def broken(self, request: httpx2.Request, why: str, *, begun: bool) -> httpx2.Response:
        """The same, where the server may have `begun` to do what was asked."""
        return _answer(request, {"code": _CODE, "message": why, "data": {"mark": self._mark, "begun": begun}})

    def read(self, message: str, data: object) -> Broken | None:
        """What an error says that the client made of such an answer; None for a server's own."""
        if not isinstance(data, dict) or data.get("mark") != self._mark:
            return None
        return Broken(message, begun=data["begun"] is True)


def unsent(error: Exception) -> bool:
    """Whether the server cannot have seen a request that failed so."""
    return isinstance(error, _UNSENT)


def unwanted(request: httpx2.Request) -> httpx2.Response:
    """In place of an answer that nobody wants any more."""
    return _answer(request, {"code": _CODE, "message": GIVEN_UP})


def _answer(request: httpx2.Request, error: dict[str, object]) -> httpx2.Response:
    """As a stream, whose client puts the number of its own request in; what is no request has its answer dropped."""
    content = json.dumps({"jsonrpc": "2.0", "id": 0, "error": error}).encode()
    headers = {"Content-Type": "text/event-stream"}
    return httpx2.Response(200, headers=headers, content=b"data: %s\n\n" % content, request=request)
