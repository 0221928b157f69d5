"""What an agent can look things up in."""

from __future__ import annotations

from abc import ABC, abstractmethod


class KnowledgeSource(ABC):
    """Something that answers a query with passages. Several runs, threads and event loops may ask it at once."""

    async def init(self) -> None:  # noqa: B027  (a source that has nothing to prepare need not say so)
        """Prepare: connect, read an index. Awaited once before the first `retrieve`, again only if it failed."""

    @abstractmethod
    async def retrieve(self, query: str, top_k: int = 5) -> list[str]:
        """The at most `top_k` passages that fit best, best first; none if nothing fits. Raises what goes wrong."""
