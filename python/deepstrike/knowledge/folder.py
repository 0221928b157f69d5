"""A folder of files as a knowledge source."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

from deepstrike.errors import ConfigError, DeepStrikeError
from deepstrike.knowledge import rows
from deepstrike.knowledge.base import KnowledgeSource
from deepstrike.knowledge.extract import MAX_BYTES, Unreadable, text_of
from deepstrike.knowledge.passages import passages
from deepstrike.knowledge.places import default_index, files_below
from deepstrike.search import index as text_index
from deepstrike.search.database import Database
from deepstrike.search.ranks import fused
from deepstrike.search.vectors import nearest, packed, signs, unpacked
from deepstrike.text import path_text, printable
from deepstrike.tools.rooted import Refused, open_below
from deepstrike.tools.threads import run_in_thread
from deepstrike.write_ahead import transaction

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from deepstrike.knowledge.passages import Passage
    from deepstrike.knowledge.places import Found
    from deepstrike.search.embeddings import Embeddings

_logger = logging.getLogger("deepstrike")

CANDIDATES: Final = 50
_BATCH: Final = 32


@dataclass(frozen=True, slots=True)
class _Read:
    found: Found
    digest: str
    pieces: Sequence[Passage]


class FolderKnowledge(KnowledgeSource):
    """Looks up passages in the files below `path`: text, Markdown, HTML, and PDF where `pypdf` is installed.

    Files are cut at headings and paragraphs. A result begins with its source, as in `guide.md#Install, lines 3-20:`.
    Ranking goes by words (FTS5, English words by their stems); with `embeddings` also by meaning, both joined by rank.

    The index is the SQLite file `index`, by default one in the user's cache folder; it only repeats what the files say
    and may be deleted. `init` makes it and every `retrieve` brings it up to date: files are compared by time and size,
    only those that changed are read, and one that was moved is not indexed again. Several processes may use one index,
    and several folders too. Hidden files, links, files above 16 MiB and files without text are left out, the latter two
    with a warning in the log `deepstrike`. One that could not be opened, or that a library is missing for, is tried
    again with every question and warned of once.

    Raises `ConfigError` where `path` is no path or no folder, or `index` one, or a SQLite file of another program;
    `DeepStrikeError` with code `store_busy` or `store_io` where the index cannot be used or the folder not be read.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        index: str | os.PathLike[str] | None = None,
        embeddings: Embeddings | None = None,
    ) -> None:
        self._root = Path(path_text("path", path)).absolute()
        if not self._root.is_dir():
            raise ConfigError(f"FolderKnowledge({os.fspath(path)!r}): there is no such folder")
        self._database = Database(index if index is not None else default_index(self._root), rows.LAYOUT)
        self._embeddings = embeddings
        self._refreshing = Lock()
        self._told: set[tuple[str, str]] = set()

    async def init(self) -> None:
        """Make the index, or bring it up to date. Cancelling returns at once; what was indexed so far is kept."""
        await run_in_thread(self._refresh)

    async def retrieve(self, query: str, top_k: int = 5) -> list[str]:
        """The at most `top_k` passages that fit best as the files are now, best first. Any text is a query."""
        return await run_in_thread(partial(self._retrieve, query, top_k))

    def close(self) -> None:
        """Close the index; it opens again when it is needed."""
        self._database.close()

    def _retrieve(self, query: str, top_k: int) -> list[str]:
        folder = self._refresh()
        with self._database.work() as connection:
            hits = text_index.hits(connection, rows.index_of(folder), query, CANDIDATES)
        ranked = [hit.number for hit in hits]
        if self._embeddings is not None and query.strip():
            ranked = [number for number, _ in fused(ranked, self._alike(self._embeddings, folder, query))]
        with self._database.work() as connection, transaction(connection, "DEFERRED"):
            return rows.sourced(connection, ranked, max(top_k, 0))

    def _refresh(self) -> int:
        """Bring the index up to date; the number of the folder in it."""
        with self._refreshing:
            try:
                there = [found for found in files_below(self._root) if not self._is_index(found)]
            except OSError as error:
                raise DeepStrikeError(f"{self._root} cannot be read: {error.strerror}", code="store_io") from error
            with self._database.work() as connection, transaction(connection):
                folder = rows.folder_number(connection, str(self._root))
                known = rows.known_files(connection, folder)
            changed = [found for found in there if not _is_known(found, known.get(found.path))]
            paths = {found.path for found in there}
            self._told = {(path, reason) for path, reason in self._told if path in paths}
            for at in range(0, len(changed), _BATCH):
                part = changed[at : at + _BATCH]
                batch = [read for each in part if (read := self._read(each)) is not None]
                self._store(folder, batch)
                paths -= {each.path for each in part} - {read.found.path for read in batch}
            if gone := [path for path in known if path not in paths]:
                with self._database.work() as connection, transaction(connection):
                    rows.remove_files(connection, folder, gone)
            if self._embeddings is not None:
                self._learn(self._embeddings, folder)
            return folder

    def _is_index(self, found: Found) -> bool:
        """Whether it is our own, where that lies in the folder."""
        return str(self._root / found.path).startswith(str(self._database.path))

    def _store(self, folder: int, batch: Iterable[_Read]) -> None:
        """One transaction for a batch, so that other processes never wait for long."""
        with self._database.work() as connection, transaction(connection):
            known = rows.known_files(connection, folder)
            by_digest = {file.digest: file for file in known.values()}
            for read in batch:
                if _is_known(read.found, known.get(read.found.path)):
                    continue  # another process was faster
                same = by_digest.get(read.digest)
                if same is not None and (same.path == read.found.path or not (self._root / same.path).exists()):
                    if same.path != read.found.path:
                        rows.remove_files(connection, folder, [read.found.path])
                    rows.move_file(connection, same, read.found)
                    del by_digest[read.digest]
                else:
                    rows.put_file(connection, folder, read.found, read.digest, read.pieces)

    def _read(self, found: Found) -> _Read | None:
        """None for a file that has just gone, or may be read the next time."""
        try:
            if found.size > MAX_BYTES:
                raise Unreadable(f"has more than {MAX_BYTES} bytes")
            with os.fdopen(open_below(self._root, found.path), "rb", buffering=0) as file:
                data = file.read(MAX_BYTES + 1)
            return _Read(found, sha256(data).hexdigest(), passages(text_of(found.path, data)))
        except FileNotFoundError:
            return None
        except Unreadable as error:
            self._warn(found, str(error))
            return None if error.may_pass else _Read(found, f"unreadable {found.path}", ())
        except (Refused, OSError) as error:
            self._warn(found, f"cannot be opened: {getattr(error, 'strerror', None) or error}")
            return None

    def _warn(self, found: Found, reason: str) -> None:
        if (found.path, reason) not in self._told:
            self._told.add((found.path, reason))
            _logger.warning("%s is left out of the index: it %s", printable(str(self._root / found.path)), reason)

    def _learn(self, embeddings: Embeddings, folder: int) -> None:
        """Make the vectors that are missing. The model is asked while nobody waits for the file."""
        with self._database.work() as connection:
            missing = list(rows.without_vector(connection, folder).items())
        for at in range(0, len(missing), _BATCH):
            part = missing[at : at + _BATCH]
            made = [packed(vector) for vector in embeddings.embed([text for _, text in part])]
            with self._database.work() as connection, transaction(connection):
                rows.put_vectors(connection, {number: data for (number, _), data in zip(part, made, strict=True)})

    def _alike(self, embeddings: Embeddings, folder: int, query: str) -> list[int]:
        [asked] = embeddings.embed([query])
        with self._database.work() as connection:
            known = rows.vectors(connection, folder)
        bits = {number: signs(unpacked(data)) for number, data in known.items()}
        return nearest(asked, bits, lambda numbers: {number: known[number] for number in numbers})[:CANDIDATES]


def _is_known(found: Found, file: rows.KnownFile | None) -> bool:
    return file is not None and (file.mtime_ns, file.size) == (found.mtime_ns, found.size)
