"""The index of folders in a SQLite file. For whoever has the connection; several statements need a transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deepstrike.knowledge.extract import has_lines
from deepstrike.search import index
from deepstrike.search.database import Layout
from deepstrike.text import printable

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping, Sequence

    from deepstrike.knowledge.passages import Passage
    from deepstrike.knowledge.places import Found

LAYOUT: Final = Layout(
    "knowledge indexes",
    0x6473_6B6E,  # "dskn"
    1,
    (
        "CREATE TABLE folders (number INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE)",
        "CREATE TABLE files (number INTEGER PRIMARY KEY, folder INTEGER NOT NULL, path TEXT NOT NULL, "
        "mtime INTEGER NOT NULL, size INTEGER NOT NULL, digest TEXT NOT NULL, UNIQUE (folder, path))",
        "CREATE TABLE passages (number INTEGER PRIMARY KEY AUTOINCREMENT, file INTEGER NOT NULL, "
        "heading TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, text TEXT NOT NULL)",
        "CREATE INDEX passages_by_file ON passages (file)",
        "CREATE TABLE vectors (number INTEGER PRIMARY KEY, data BLOB NOT NULL)",
    ),
    rebuilt=True,
)


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file as it was indexed. `digest` is of its bytes; a file without text is known too, so it is read once."""

    number: int
    path: str
    mtime_ns: int
    size: int
    digest: str


def folder_number(connection: sqlite3.Connection, path: str) -> int:
    """The number of a folder, made known with an index of its own where it is not."""
    connection.execute("INSERT INTO folders (path) VALUES (?) ON CONFLICT (path) DO NOTHING", (path,))
    [(number,)] = connection.execute("SELECT number FROM folders WHERE path = ?", (path,)).fetchall()
    index.create(connection, index_of(number))
    return int(number)


def index_of(folder: int) -> str:
    """The name of a folder's index."""
    return f"words_{folder:d}"


def known_files(connection: sqlite3.Connection, folder: int) -> dict[str, KnownFile]:
    """The files of a folder by path."""
    found = connection.execute(
        "SELECT number, path, mtime, size, digest FROM files WHERE folder = ? ORDER BY path", (folder,)
    )
    return {row[1]: KnownFile(*row) for row in found.fetchall()}


def put_file(connection: sqlite3.Connection, folder: int, found: Found, digest: str, pieces: Sequence[Passage]) -> None:
    """Keep a file with its passages, in place of what was known by its path."""
    remove_files(connection, folder, [found.path])
    [(file,)] = connection.execute(
        "INSERT INTO files (folder, path, mtime, size, digest) VALUES (?, ?, ?, ?, ?) RETURNING number",
        (folder, found.path, found.mtime_ns, found.size, digest),
    ).fetchall()
    for piece in pieces:
        [(number,)] = connection.execute(
            "INSERT INTO passages (file, heading, first, last, text) VALUES (?, ?, ?, ?, ?) RETURNING number",
            (file, piece.heading, piece.first, piece.last, piece.text),
        ).fetchall()
        index.put(connection, index_of(folder), [(number, piece.heading, piece.text)])


def move_file(connection: sqlite3.Connection, file: KnownFile, found: Found) -> None:
    """The same bytes under another path or time."""
    connection.execute(
        "UPDATE files SET path = ?, mtime = ?, size = ? WHERE number = ?",
        (found.path, found.mtime_ns, found.size, file.number),
    )


def remove_files(connection: sqlite3.Connection, folder: int, paths: Iterable[str]) -> None:
    """Take files out, with their passages, words and vectors."""
    for path in paths:
        gone = connection.execute(
            "SELECT passages.number, heading, text FROM passages, files WHERE file = files.number AND folder = ? "
            "AND path = ?",
            (folder, path),
        ).fetchall()
        index.take(connection, index_of(folder), gone)
        connection.executemany("DELETE FROM passages WHERE number = ?", ((number,) for number, _, _ in gone))
        connection.executemany("DELETE FROM vectors WHERE number = ?", ((number,) for number, _, _ in gone))
        connection.execute("DELETE FROM files WHERE folder = ? AND path = ?", (folder, path))


def sourced(connection: sqlite3.Connection, numbers: Iterable[int], limit: int) -> list[str]:
    """The first `limit` passages that are still there, each under a line that names its source."""
    shown: list[str] = []
    for number in numbers:
        if len(shown) == limit:
            break
        found = connection.execute(
            "SELECT path, heading, first, last, text FROM passages, files "
            "WHERE passages.number = ? AND files.number = file",
            (number,),
        ).fetchall()
        shown += [f"{_source(path, heading, first, last)}\n{text}" for path, heading, first, last, text in found]
    return shown


def _source(path: str, heading: str, first: int, last: int) -> str:
    path = printable(path)
    section = f"{path}#{heading}" if heading else path
    return f"{section}, lines {first}-{last}:" if has_lines(path) else f"{section}:"


def without_vector(connection: sqlite3.Connection, folder: int) -> dict[int, str]:
    """The passages that have none, by number."""
    found = connection.execute(
        "SELECT passages.number, text FROM passages, files WHERE file = files.number AND folder = ? "
        "AND passages.number NOT IN (SELECT number FROM vectors)",
        (folder,),
    )
    return dict(found.fetchall())


def put_vectors(connection: sqlite3.Connection, vectors: Mapping[int, bytes]) -> None:
    """Keep vectors of those of these passages that are still there."""
    connection.executemany(
        "INSERT OR REPLACE INTO vectors SELECT number, ? FROM passages WHERE number = ?",
        ((data, number) for number, data in vectors.items()),
    )


def vectors(connection: sqlite3.Connection, folder: int) -> dict[int, bytes]:
    """All vectors of a folder."""
    found = connection.execute(
        "SELECT vectors.number, data FROM vectors, passages, files WHERE passages.number = vectors.number "
        "AND file = files.number AND folder = ?",
        (folder,),
    )
    return dict(found.fetchall())
