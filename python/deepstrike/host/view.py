"""The context of a session, to look at."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deepstrike.host.folding import look
from deepstrike.wire.message import HeadBlock

if TYPE_CHECKING:
    from deepstrike.kernel import Kernel
    from deepstrike.sessions.base import SessionLog
    from deepstrike.wire.message import ToolSpec, Turn


@dataclass(frozen=True, slots=True)
class SystemSlot:
    """A slot that is one text."""

    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class TurnSlot:
    """A slot that is made of turns, as the model gets them."""

    turns: tuple[Turn, ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class ToolSlot:
    """The tools, sorted by name, which go with every request."""

    specs: tuple[ToolSpec, ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class ContextView:
    """The four slots of a session as they stand, and the tools beside them.

    `state` is `turns[0]` as the task stands now: goal, criteria, plan, progress, compression log, signals. On the wire
    changes of it stand in deltas among the turns behind it, the `history`. The tokens of a slot are counted here and
    now in the model's vocabulary. `total_tokens` is the estimate that the limits go by: it follows the usage that the
    service reported, so it is not their sum. `window` is the context window of the newest goal in tokens.
    """

    system_stable: SystemSlot
    system_knowledge: SystemSlot
    tools: ToolSlot
    state: TurnSlot
    history: TurnSlot
    total_tokens: int
    window: int


async def view(session_id: str, log: SessionLog) -> ContextView:
    """The context of a session as its log stands, without becoming its writer. Raises as `look` does."""
    kernel = await look(session_id, log)
    return await asyncio.to_thread(_view, kernel)


def _view(kernel: Kernel) -> ContextView:
    weights = kernel.weights()
    blocks = kernel.blocks(kernel.epoch, 0)
    turns = tuple(block for block in blocks if not isinstance(block, HeadBlock))
    (head,) = (block for block in blocks if isinstance(block, HeadBlock))
    return ContextView(
        SystemSlot(head.system_stable, weights.system_stable),
        SystemSlot(head.system_knowledge, weights.system_knowledge),
        ToolSlot(head.tools, weights.tools),
        TurnSlot((kernel.task(),), weights.state),
        TurnSlot(turns[1:], weights.history),
        weights.total,
        weights.window,
    )
