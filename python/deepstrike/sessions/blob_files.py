"""Blobs as files: one folder a session, one file a blob."""

from __future__ import annotations

import os
import shutil
from itertools import count
from typing import TYPE_CHECKING

from deepstrike.sessions.blob import blob_ref, blob_shelf, is_ref, shelf_of
from deepstrike.sessions.disk import BINARY, flush, flush_folder, make_folder, open_to_read, read_at, remove, write_all
from deepstrike.sessions.refusals import damaged_blob, failed, unknown_blob

if TYPE_CHECKING:
    from pathlib import Path

_numbers = count(1)


class BlobFiles:
    """The blobs below `folder`. From any thread and process; a blob is there whole or not at all."""

    __slots__ = ("_flushed", "_folder")

    def __init__(self, folder: Path, *, flushed: bool) -> None:
        self._folder = folder
        self._flushed = flushed

    def put(self, session_id: str, data: bytes) -> str:
        """Keep `data`; the same bytes are kept once in a session."""
        shelf = blob_shelf(session_id)
        ref = blob_ref(shelf, data)
        path = self._folder / shelf / ref
        try:
            if not _holds(path, data):
                make_folder(path.parent, flushed=self._flushed)
                self._write(path, data)
        except OSError as error:
            raise failed("writing the blob", path, error) from error
        return ref

    def get(self, ref: str, offset: int, length: int | None) -> bytes:
        """See `SessionLog.get_blob`. A blob that is read as a whole is checked against its reference."""
        if not is_ref(ref):
            raise unknown_blob(ref)
        path = self._folder / shelf_of(ref) / ref
        start = max(offset, 0)
        try:
            data = _read(path, start, length)
        except FileNotFoundError:
            raise unknown_blob(ref) from None
        except OSError as error:
            raise failed("reading the blob", path, error) from error
        if start == 0 and length is None and blob_ref(shelf_of(ref), data) != ref:
            raise damaged_blob(ref)
        return data

    def remove(self, session_id: str) -> bool:
        """Remove all blobs of a session; whether there were any. Raises `OSError`."""
        shelf = self._folder / blob_shelf(session_id)
        if not shelf.is_dir():
            return False
        shutil.rmtree(shelf)
        return True

    def _write(self, path: Path, data: bytes) -> None:
        # Written aside and renamed: whoever finds the name finds all the bytes.
        aside = path.with_name(f"{path.name}.{os.getpid()}-{next(_numbers)}")
        try:
            descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, 0o600)
            try:
                write_all(descriptor, data)
                if self._flushed:
                    flush(descriptor)
            finally:
                os.close(descriptor)
            aside.replace(path)
        except BaseException:
            remove(aside)
            raise
        if self._flushed:
            flush_folder(path.parent)


def _holds(path: Path, data: bytes) -> bool:
    try:
        return path.stat().st_size == len(data) and path.read_bytes() == data
    except FileNotFoundError:
        return False


def _read(path: Path, start: int, length: int | None) -> bytes:
    descriptor = open_to_read(path)
    try:
        behind = max(os.fstat(descriptor).st_size - start, 0)
        return read_at(descriptor, start, behind if length is None else min(max(length, 0), behind))
    finally:
        os.close(descriptor)
