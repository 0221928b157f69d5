"""What a dialect is made of, so that the network code serves every one of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepstrike.providers.base import ModelEvent, ModelInfo, ModelRequest
    from deepstrike.providers.faults import Faults


@dataclass(frozen=True, slots=True)
class Asked:
    """One model call as a dialect sees it.

    `source` is the name of the profile: artefacts and thinking of blocks with another `dialect` are foreign. `fields`
    are the extensions in wire form, empty once `request.memo.head` is written. `limit` is the output limit to send, or
    None. `own_address` says that the vendor itself is asked, not a compatible server elsewhere.
    """

    request: ModelRequest
    info: ModelInfo
    source: str
    fields: Mapping[str, object]
    limit: int | None
    faults: Faults
    own_address: bool = True


class Dialect(Protocol):
    """A codec: how a request is written and an answer is read. Pure, and frozen: its settings are a vendor's habits."""

    @property
    def content_type(self) -> str:
        """The content type of a good answer."""

    @property
    def structured(self) -> bool:
        """Whether `ModelRequest.output` is sent, or said in the instructions where the service's field will not do."""

    def path(self, model: str) -> str:
        """The path, perhaps with a query, behind the service's address."""

    def encode(self, asked: Asked) -> bytes:
        """The request body. What was encoded once is kept in `asked.request.memo` and not looked at again."""

    def reader(self) -> Reader:
        """Cuts the body of one answer into payloads."""

    def decoder(self, asked: Asked) -> Decoder:
        """Reads the payloads of one answer."""


class Reader(Protocol):
    """Cuts a body into event payloads."""

    def push(self, data: bytes) -> list[bytes]:
        """The payloads that `data` completes, in order."""

    def close(self) -> list[bytes]:
        """The payload that was still open when the body ended, if there is one."""


class Decoder(Protocol):
    """Turns the payloads of one answer into model events. Made anew for every try."""

    @property
    def done(self) -> bool:
        """The end marker or an error was seen: nothing of interest follows."""

    @property
    def finished(self) -> bool:
        """A finish reason was seen: the answer is whole, whatever becomes of the connection."""

    def feed(self, payloads: Sequence[bytes]) -> list[ModelEvent]:
        """The events of these payloads. An error inside the stream ends them, and `end` raises it."""

    def feed_last(self, payload: bytes) -> list[ModelEvent]:
        """As `feed`, for a payload that the end of the body may have cut: one that is not whole is passed over."""

    def feed_whole(self, body: bytes) -> list[ModelEvent] | None:
        """The events of an answer that came in one piece although a stream was asked for; None if it is no answer."""

    def end(self) -> list[ModelEvent]:
        """What is only known at the end: calls, usage, the finish.

        Raises the error that was inside the stream, and `Truncated` when no finish reason came.
        """
