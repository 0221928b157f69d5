"""The prompt as the host holds it: blocks pulled from the kernel, each only once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, cast, overload

from deepstrike.providers.base import Memo, ModelRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepstrike.kernel import Kernel
    from deepstrike.providers.base import OutputSchema
    from deepstrike.wire.effect import CallModel
    from deepstrike.wire.message import HeadBlock, Turn
    from deepstrike.wire.policy import Limits


class Turns(Sequence["Turn"]):
    """A read-only view of the first `length` turns of a list that only grows."""

    __slots__ = ("_length", "_turns")

    def __init__(self, turns: list[Turn], length: int) -> None:
        self._turns = turns
        self._length = length

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Turn: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Turn]: ...
    def __getitem__(self, index: int | slice) -> Turn | Sequence[Turn]:
        if isinstance(index, slice):
            return [self._turns[i] for i in range(*index.indices(self._length))]
        if index < 0:
            index += self._length
        if not 0 <= index < self._length:
            raise IndexError(f"turn {index} of {self._length}")
        return self._turns[index]


class Prompt:
    """Pulls what it lacks of an epoch and keeps what the provider's encoder kept."""

    __slots__ = ("_asked_by", "_epoch", "_head", "_memo", "_turns")

    def __init__(self) -> None:
        self._epoch = -1
        self._head: HeadBlock | None = None
        self._turns: list[Turn] = []
        self._memo = Memo()
        # By what the memo's head was written: another goal of the session may bring other fields.
        self._asked_by: tuple[Mapping[str, object], OutputSchema | None] | None = None

    def request(
        self,
        kernel: Kernel,
        effect: CallModel,
        extensions: Mapping[str, object],
        limits: Limits,
        output: OutputSchema | None = None,
        session: str = "",
    ) -> ModelRequest:
        """The request that `effect` asks for, with the form that the service is to give its answer."""
        head = self._pull(kernel, effect)
        if self._asked_by != (extensions, output):
            self._asked_by, self._memo = (extensions, output), Memo()
        return ModelRequest(
            head.system_stable,
            head.system_knowledge,
            Turns(self._turns, effect.len - 1),
            head.tools,
            extensions,
            _lower(effect.max_output, extensions.get("max_output_tokens")),
            effect.epoch,
            self._memo,
            output,
            window=limits.window,
            reserve=limits.reserve,
            cache_key=_cache_key(session),
        )

    def _pull(self, kernel: Kernel, effect: CallModel) -> HeadBlock:
        if effect.epoch != self._epoch or self._head is None:
            blocks = kernel.blocks(effect.epoch, 0)
            self._head = cast("HeadBlock", blocks[0])
            self._epoch, self._turns, self._memo = effect.epoch, cast("list[Turn]", blocks[1:]), Memo()
        elif effect.len - 1 > len(self._turns):
            self._turns.extend(cast("list[Turn]", kernel.blocks(effect.epoch, len(self._turns) + 1)))
        return self._head


@lru_cache(maxsize=64)
def _cache_key(session: str) -> str:
    """A name for the session's prompts that does not tell its id, which may be somebody's name."""
    return blake2b(session.encode("utf-8", "surrogatepass"), digest_size=16, person=b"deepstrike").hexdigest()


def _lower(budget: int | None, asked: object) -> int | None:
    if budget is not None and isinstance(asked, int):
        return min(budget, asked)
    return budget
