"""Sources of one's own: prepared once, whoever asks first, and failures that look like failures."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from deepstrike.errors import ToolError
from deepstrike.knowledge import KnowledgeSource, Once


class Counted(KnowledgeSource):
    """Counts its preparations; `trouble` is raised in turn, one for each, None for a good one."""

    def __init__(self, *trouble: BaseException | None, passages: tuple[str, ...] = ("a", "b")) -> None:
        self.trouble = list(trouble)
        self.passages = passages
        self.prepared = 0
        self.ready = False
        self.gate: Callable[[], bool] = lambda: True

    async def init(self) -> None:
        self.prepared += 1
        while not self.gate():
            await asyncio.sleep(0.001)
        failure = self.trouble.pop(0) if self.trouble else None
        if failure is not None:
            raise failure
        self.ready = True

    async def retrieve(self, query: str, top_k: int = 5) -> list[str]:
        assert self.ready
        if query == "down":
            raise ConnectionError("db down")
        return list(self.passages[:top_k])


async def test_given_many_who_ask_at_once_when_the_source_is_new_then_it_is_prepared_once() -> None:
    once = Once(Counted())

    answers = await asyncio.gather(*(once.retrieve("q", 1) for _ in range(50)))

    assert answers == [["a"]] * 50
    assert await once.retrieve("q") == ["a", "b"]
    assert once.source.prepared == 1  # type: ignore[attr-defined]  # it is a Counted


def test_given_loops_in_several_threads_when_they_ask_at_once_then_it_is_prepared_once() -> None:
    source = Counted()
    once = Once(source)
    arrived = threading.Barrier(8)
    source.gate = lambda: arrived.n_waiting == 0
    answers: list[list[str]] = []

    def ask() -> None:
        arrived.wait(10)
        answers.append(asyncio.run(once.retrieve("q")))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)

    assert answers == [["a", "b"]] * 8
    assert source.prepared == 1


async def test_given_a_preparation_that_fails_when_asked_again_then_it_is_tried_again() -> None:
    source = Counted(ConnectionError("not yet"), None)
    once = Once(source)

    asked = 0

    async def ask() -> list[str]:
        nonlocal asked
        asked += 1
        return await once.retrieve("q")

    source.gate = lambda: asked == 3

    answers = await asyncio.gather(*(ask() for _ in range(3)), return_exceptions=True)

    assert [str(answer) for answer in answers] == ["not yet"] * 3
    assert await once.retrieve("q") == ["a", "b"]
    assert source.prepared == 2


async def test_given_the_first_who_asks_when_cancelled_then_another_prepares() -> None:
    source = Counted()
    once = Once(source)
    opened = False
    source.gate = lambda: opened
    first = asyncio.create_task(once.retrieve("q"))
    await asyncio.sleep(0)
    second = asyncio.create_task(once.retrieve("q"))
    third = asyncio.create_task(once.retrieve("q"))
    await asyncio.sleep(0)
    third.cancel()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    opened = True

    assert await asyncio.wait_for(second, 5) == ["a", "b"]
    assert source.prepared == 2


async def test_given_a_source_that_fails_when_looked_up_then_it_is_an_error_and_not_an_empty_answer() -> None:
    once = Once(Counted())

    with pytest.raises(ToolError) as failed:
        await once.look_up("down")
    assert str(failed.value) == "the knowledge source failed: ConnectionError: db down"
    assert await once.look_up("up", 2) == "[1] a\n\n[2] b"
    assert await Once(Counted(passages=())).look_up("up") == "Nothing was found."
    with pytest.raises(ToolError, match=r"^the knowledge source failed: OSError$"):
        await Once(Counted(OSError())).look_up("up")
