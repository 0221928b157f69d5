"""How a blob is called: by its session and its content."""

from __future__ import annotations

import re

_REF = re.compile("[0-9a-f]{32}-[0-9a-f]{32}")


def blob_shelf(session_id: str) -> str:
    """The digest that every blob reference of a session begins with; a safe file name whatever the id holds."""
    from hashlib import blake2b  # loads OpenSSL: only sessions that keep a blob pay for it

    return blake2b(session_id.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def blob_ref(shelf: str, data: bytes) -> str:
    """The reference of `data` in the session of `shelf`: `<shelf>-<content digest>`, lower-case hex.

    The same bytes have one reference within a session and another in every other session, so that deleting a session
    can take its blobs along.
    """
    from hashlib import blake2b

    return f"{shelf}-{blake2b(data, digest_size=16).hexdigest()}"


def shelf_of(ref: str) -> str:
    """The `shelf` that a reference was made for."""
    return ref.partition("-")[0]


def is_ref(text: str) -> bool:
    """Whether `text` has the shape of a reference, so that it may be part of a path."""
    return _REF.fullmatch(text) is not None
