"""The session log: the one thing a run cannot lose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


class SessionLog(Protocol):
    """An append-only log of records for each session, and a store of blobs beside it.

    Records go in and come out as the bytes that crossed the kernel's boundary. The log's own frame around each holds
    a checksum chained to the one before, and the mark of its batch. Session ids are any text. Every method may be
    called from any event loop and thread.
    """

    async def acquire(self, session_id: str) -> str:
        """Become the one writer; returns the owner token for `append` and `release`.

        Raises `SessionBusy` at once while another owner holds the session.
        """

    async def release(self, session_id: str, owner: str) -> None:
        """Give the session back. Releasing twice, or with a token that is not the owner's, does nothing."""

    async def append(self, session_id: str, records: Sequence[bytes], expected_seq: int, *, owner: str) -> int:
        """Append a batch, all or nothing, and return the seq of its last record.

        `expected_seq` is the seq that the first record of the batch must get, 0 on an empty session. Raises
        `StaleWriter` when it is not, or when `owner` does not hold the session; then nothing was written. Cancelling
        leaves the batch either whole in the log or absent.
        """

    async def read(self, session_id: str, from_seq: int = 0) -> list[bytes]:
        """The records from `from_seq` on, [] for a session that does not exist. Raises `CorruptLog` on damage."""

    async def latest_seq(self, session_id: str) -> int:
        """The seq of the last record, −1 when there is none."""

    async def sessions(self) -> list[str]:
        """The ids of all sessions that hold a record, in order of their first append."""

    async def delete(self, session_id: str) -> None:
        """Remove the session's records and blobs. Raises `SessionBusy` while a run is live on it, `UnknownSession`."""

    async def put_blob(self, session_id: str, data: bytes) -> str:
        """Keep `data` outside the log and return its reference; durable before the record that names it."""

    async def get_blob(self, ref: str, offset: int = 0, length: int | None = None) -> bytes:
        """Bytes of a blob from `offset` on, at most `length`. Raises `SessionError` for an unknown reference."""
