"""What a dream may spend."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from dreams import form, session

from deepstrike import InMemoryDreamStore, RuntimeOptions, RuntimeRunner
from deepstrike.dream import DreamResult
from deepstrike.providers.base import Finish, ModelEvent, ModelInfo, ModelRequest, Provider
from deepstrike.stream import TextDelta
from deepstrike.wire.message import Usage
from deepstrike.wire.policy import Price


class Priced(Provider):
    """A model with a price: a dollar for a thousand tokens read, two for a thousand written. Keeps its requests."""

    dialect = "priced"

    def __init__(self, usage: Usage | None) -> None:
        self.info = ModelInfo("priced", price=Price(10**9, 2 * 10**9, 10**8, 10**9))
        self.requests: list[ModelRequest] = []
        self._usage = usage

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.requests.append(request)
        if self._usage is not None:
            yield self._usage
        yield TextDelta(form(f"User has cat number {len(self.requests)}"))
        yield Finish("stop")

    async def aclose(self) -> None:
        """Nothing is open."""


async def dreamed(model: Priced, store: InMemoryDreamStore, **limits: float | None) -> DreamResult:
    options = RuntimeOptions(provider=model, dream_store=store, agent_id="ann", **limits)  # type: ignore[arg-type]
    return await RuntimeRunner(options).dream("ann")


@pytest.fixture
async def store() -> InMemoryDreamStore:
    """Five sessions of one turn."""
    store = InMemoryDreamStore()
    for number in range(5):
        await store.save_session(session(f"s{number}", f"I have cat number {number}", at=number + 1))
    return store


@pytest.mark.parametrize(
    ("limits", "usage", "calls"),
    [
        ({"max_total_tokens": 5_000}, Usage(1_500, 500), 3),
        ({"max_total_tokens": 5_000}, Usage(1_900, 3_200), 1),
        ({"max_total_tokens": 1_700}, None, 3),
        ({"max_cost_usd": 6.0}, Usage(2_000, 100), 3),
        ({"max_cost_usd": 6.0}, Usage(2_000, 100, cached=2_000), 5),
        ({}, Usage(10**6, 10**6), 5),
    ],
)
async def test_given_limits_when_dreaming_then_calls_end_with_them_and_the_next_dream_goes_on(
    limits: dict[str, float], usage: Usage | None, calls: int, store: InMemoryDreamStore
) -> None:
    model = Priced(usage)

    result = await dreamed(model, store, **limits)

    assert (len(model.requests), result.sessions_processed) == (calls, calls)
    waiting = [(failure.session_id, failure.code, failure.retryable) for failure in result.failures]
    assert waiting == ([(f"s{calls}", "token_budget", True)] if calls < 5 else [])
    again = await dreamed(model, store, **limits)
    assert again.sessions_processed == min(calls, 5 - calls)


async def test_given_little_left_when_asked_then_the_answer_is_bounded_by_it(store: InMemoryDreamStore) -> None:
    model = Priced(Usage(1_000, 10))

    await dreamed(model, store, max_total_tokens=3_000)

    bounds = [request.max_output for request in model.requests]
    assert len(bounds) > 1
    assert all(bound is not None and 200 <= bound < 3_000 for bound in bounds)
    assert bounds[0] is not None
    assert bounds[1] == bounds[0] - 1_010


async def test_given_no_room_for_the_first_session_when_dreaming_then_nothing_is_asked(
    store: InMemoryDreamStore,
) -> None:
    model = Priced(None)

    result = await dreamed(model, store, max_total_tokens=100)

    assert model.requests == []
    assert [(failure.code, failure.retryable) for failure in result.failures] == [("token_budget", False)]
