"""The dream store in a file: no byte left of what is forgotten, other processes, crashes, other files, meanings."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sqlite3
import subprocess
import sys
from multiprocessing import get_context
from pathlib import Path
from random import Random

import pytest
from meanings import TinyEmbeddings

from deepstrike.errors import ConfigError, DeepStrikeError
from deepstrike.memory import MemoryEntry, SessionData, SqliteDreamStore, curate, observed

SOURCES = Path(__file__).parents[2] / "python"


def session(session_id: str, *texts: str, agent: str = "ann") -> SessionData:
    return SessionData(session_id, agent, [{"role": "user", "content": text} for text in texts])


def bytes_of(folder: Path) -> bytes:
    """All bytes of all files of the store, the index and the log included."""
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()))


def index_words(path: Path, agent: int = 1) -> set[str]:
    """The words in an agent's index, as SQLite reads them from it."""
    connection = sqlite3.connect(path)
    connection.execute(f"CREATE VIRTUAL TABLE temp.seen USING fts5vocab(main, words_{agent}, row)")
    words = {word for (word,) in connection.execute("SELECT term FROM seen")}
    connection.close()
    return words


async def test_given_a_session_when_forgotten_then_no_byte_of_it_is_in_any_file(tmp_path: Path) -> None:
    path = tmp_path / "dreams.db"
    store = SqliteDreamStore(path, embeddings=TinyEmbeddings())
    for number in range(60):
        await store.save_session(session(f"keep{number}", *(f"ordinary talk {number} {turn}" for turn in range(10))))
    secret = session("secret-session", "my zqxpassword is xyzzyplugh", *["vwqgarbanzo car puppy"] * 30)
    await store.save_session(secret)
    existing = await store.load_memories("ann")
    facts = [
        observed("zqxpassword: xyzzyplugh", session_id="secret-session", record=0, at_ms=1, source="x", key="qwxkey"),
        observed("ordinary fact", session_id="keep1", record=0, at_ms=1, source="x"),
    ]
    await store.commit("ann", curate(existing, facts), existing)
    before = bytes_of(tmp_path)
    traces = [b"zqxpassword", b"xyzzyplugh", b"vwqgarbanzo", b"qwxkey", b"secret-session"]
    assert [trace in before for trace in traces] == [True] * 5
    assert {"vwqgarbanzo", "xyzzyplugh"} <= index_words(path)

    assert await store.forget("secret-session") == 32

    after = bytes_of(tmp_path)
    assert [trace in after for trace in traces] == [False] * 5
    assert re.search(rb"garbanzo|plugh|xpassw", after) is None
    assert not index_words(path) & {"vwqgarbanzo", "xyzzyplugh", "zqxpassword", "puppi", "car"}
    assert (tmp_path / "dreams.db-wal").stat().st_size == 0
    connection = sqlite3.connect(path)
    rows = [connection.execute(f"SELECT count(*) FROM {table}").fetchall() for table in ("vectors", "signs", "turns")]
    connection.close()
    assert rows == [[(601,)], [(601,)], [(600,)]]
    assert len(await store.load_sessions("ann")) == 60
    assert [entry.text for entry in await store.search("ann", "ordinary fact", 1)] == ["ordinary fact"]


async def test_given_sessions_that_grew_in_turns_when_forgotten_then_no_word_of_them_is_left_in_split_pages(
    tmp_path: Path,
) -> None:
    dice = Random(3)
    store = SqliteDreamStore(tmp_path / "dreams.db")
    said: dict[str, list[str]] = {}
    for _ in range(160):
        texts = said.setdefault(f"s{dice.randrange(20)}", [])
        texts.append(" ".join(f"w{dice.getrandbits(60):015x}" for _ in range(dice.randrange(1, 60))))
        await store.save_session(session(next(name for name in said if said[name] is texts), *texts))

    for name, texts in said.items():
        await store.forget(name)
        left = bytes_of(tmp_path)
        assert [word for text in texts for word in text.split() if word.encode() in left] == []


async def test_given_a_reader_in_the_way_when_forgetting_then_it_says_so_and_the_next_time_wipes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "dreams.db"
    monkeypatch.setattr("deepstrike.search.database.BUSY_MS", 50)
    store = SqliteDreamStore(path)
    await store.save_session(session("s", "xyzzyplugh"))
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM turns").fetchall()

    with pytest.raises(DeepStrikeError) as refused:
        await store.forget("s")
    assert (refused.value.code, refused.value.retryable) == ("store_busy", True)
    reader.close()
    assert await store.forget("s") == 0
    assert b"xyzzyplugh" not in bytes_of(tmp_path)


COMMITTER = """
import asyncio, sys
from deepstrike.memory import SqliteDreamStore, curate, observed

async def main():
    store = SqliteDreamStore(sys.argv[1])
    at = 0
    while True:
        existing = await store.load_memories("ann")
        facts = [observed(f"fact {at} {part}", session_id="s", record=part, at_ms=at, source="x") for part in range(40)]
        await store.commit("ann", curate(existing, facts), existing)
        print(at, flush=True)
        at += 1

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
async def test_given_a_process_killed_while_it_commits_when_opened_then_each_commit_is_there_in_full_or_not_at_all(
    tmp_path: Path,
) -> None:
    for kill in range(3):
        path = tmp_path / f"{kill}.db"
        process = subprocess.Popen(
            [sys.executable, "-c", COMMITTER, str(path)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(SOURCES)},
            text=True,
        )
        assert process.stdout
        acknowledged = [int(process.stdout.readline()) for _ in range(kill + 1)][-1]
        process.send_signal(signal.SIGKILL)
        process.communicate()

        kept = await SqliteDreamStore(path).load_memories("ann")
        assert len(kept) % 40 == 0
        assert len(kept) >= 40 * (acknowledged + 1)


async def test_given_two_processes_when_both_write_then_both_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "dreams.db"
    program = (
        "import asyncio, sys\nfrom deepstrike.memory import SessionData, SqliteDreamStore\n"
        "async def main():\n    store = SqliteDreamStore(sys.argv[1])\n    for n in range(30):\n"
        "        await store.save_session(SessionData(sys.argv[2] + str(n), 'ann', [{'content': 'x'}]))\n"
        "asyncio.run(main())"
    )
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    processes = [
        subprocess.Popen([sys.executable, "-c", program, str(path), name], env=environment) for name in ("a", "b")
    ]

    assert [process.wait() for process in processes] == [0, 0]
    kept = {data.session_id for data in await SqliteDreamStore(path).load_sessions("ann")}
    assert kept == {f"{name}{number}" for name in "ab" for number in range(30)}


@pytest.mark.skipif(sys.platform == "win32", reason="fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_given_an_open_store_when_forked_then_parent_and_child_both_go_on(tmp_path: Path) -> None:
    store = SqliteDreamStore(tmp_path / "dreams.db")
    await store.save_session(session("before", "x"))
    process = get_context("fork").Process(target=lambda: asyncio.run(store.save_session(session("child", "y"))))
    process.start()
    await store.save_session(session("parent", "z"))
    await asyncio.to_thread(process.join)

    assert process.exitcode == 0
    assert {data.session_id for data in await store.load_sessions("ann")} == {"before", "child", "parent"}


async def test_given_a_file_of_another_kind_when_used_then_it_is_refused_and_left_alone(tmp_path: Path) -> None:
    other, text, newer = tmp_path / "other.db", tmp_path / "text.db", tmp_path / "newer.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    text.write_text("no database, but some text\n" * 100)
    await SqliteDreamStore(newer).save_session(session("s", "x"))
    connection = sqlite3.connect(newer)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = {path: path.read_bytes() for path in (other, text)}

    with pytest.raises(ConfigError, match="not one of memories"):
        await SqliteDreamStore(other).load_sessions("ann")
    for path in (text, newer):
        with pytest.raises(DeepStrikeError) as refused:
            await SqliteDreamStore(path).load_sessions("ann")
        assert refused.value.code == "store_unusable"
    assert {path: path.read_bytes() for path in before} == before
    for wrong in (tmp_path, "", ":memory:"):
        with pytest.raises(ConfigError):
            SqliteDreamStore(wrong)


async def test_given_a_store_when_made_then_only_its_user_can_read_it(tmp_path: Path) -> None:
    store = SqliteDreamStore(tmp_path / "deep" / "dreams.db")
    await store.save_session(session("s", "x"))

    modes = {path.name: path.stat().st_mode & 0o077 for path in (tmp_path / "deep").iterdir()}
    assert modes == {"dreams.db": 0, "dreams.db-wal": 0, "dreams.db-shm": 0}


async def test_given_embeddings_when_searched_then_other_words_of_one_meaning_are_found(tmp_path: Path) -> None:
    path = tmp_path / "dreams.db"
    plain = SqliteDreamStore(path)
    await plain.save_session(session("s", "the automobile is red", "a hound barked", "nothing of the kind"))
    assert await plain.search("ann", "car", 3) == []
    model = TinyEmbeddings()
    store = SqliteDreamStore(path, embeddings=model)
    existing = await store.load_memories("ann")
    entry = observed("User sees a physician", session_id="s", record=0, at_ms=1, source="x")
    await store.commit("ann", curate(existing, [entry]), existing)

    assert [found.text for found in await store.search("ann", "car", 3)] == ["the automobile is red"]
    assert [found.text for found in await store.search("ann", "puppy", 3)] == ["a hound barked"]
    assert [found.text for found in await store.search("ann", "doctor", 3)] == ["User sees a physician"]
    kept = {"the automobile is red", "a hound barked", "nothing of the kind", "User sees a physician"}
    assert (len(model.asked), set(model.asked)) == (7, kept | {"car", "puppy", "doctor"})
    await store.save_session(session("s", "a hound barked"))
    assert [found.text for found in await store.search("ann", "car", 3)] == []
    assert [found.text for found in await store.search("ann", "puppy", 3)] == ["a hound barked"]


async def test_given_a_call_when_cancelled_then_what_had_begun_is_finished(tmp_path: Path) -> None:
    store = SqliteDreamStore(tmp_path / "dreams.db")
    await store.save_session(session("first", "x"))
    saving = asyncio.create_task(store.save_session(session("second", *["y"] * 1000)))
    await asyncio.sleep(0)
    saving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await saving

    lengths = [len(data.messages) for data in await store.load_sessions("ann")]
    assert lengths in ([1], [1, 1000])


async def test_given_a_message_that_is_no_json_when_saved_then_nothing_is_changed(tmp_path: Path) -> None:
    store = SqliteDreamStore(tmp_path / "dreams.db")
    odd: dict[str, object] = {"role": "user", "content": "x", "seen": {1, 2}}

    with pytest.raises(TypeError):
        await store.save_session(SessionData("s", "ann", [odd]))
    assert await store.load_sessions("ann") == []
    assert isinstance((await store.search("ann", "x", 1)), list)
    assert MemoryEntry("x").metadata == {}
