"""Where an insight comes from: the turn that says most of it, and whether that was the user's or a tool's."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from deepstrike.memory.messages import is_trusted, outside_of, role_of, words_of
from deepstrike.search.words import pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Message = Mapping[str, object]

_SAY_NOTHING: Final = frozenset({"user", "users", "agent", "assistant"})
_STEM: Final = 6


class Origin(NamedTuple):
    """A turn by its place in the session, its words, and whether what was drawn from it may be trusted.

    `at_ms` is when it was said, None where the turn does not tell.
    """

    record: int
    source: str
    trusted: bool
    at_ms: int | None = None


class Turns:
    """The turns of a session, by their words."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages
        self._words = [_stems(pieces(words_of(message))) for message in messages]
        self._beside = {
            place: _stems(found) for place, message in enumerate(messages) if (found := outside_of(message))
        }
        self._turns_with = Counter(word for words in (*self._words, *self._beside.values()) for word in words)

    def origin(self, insight: str) -> Origin:
        """Where `insight` was said. A word counts the more the fewer turns have it; of equals it is the later turn.

        What came from outside (a tool, a signal, a look-up) and says more of it than the user does is untrusted, also
        where the agent has repeated it, and so is what the user has no word of while there is text from outside. In
        doubt the label does less harm than its lack.
        """
        wanted = _stems(pieces(insight))
        user = self._most(wanted, lambda message: is_trusted(message) and role_of(message) == "user")
        outside = max(self._most(wanted, lambda message: not is_trusted(message)), self._most_beside(wanted))
        anybody = self._most(wanted, lambda message: True)
        if outside[1] >= 0 and (not user[0] or outside[0] > user[0]):
            return self._from((outside if outside[0] else anybody)[1], trusted=False)
        return self._from((user if user[0] else anybody)[1], trusted=True)

    def _from(self, place: int, *, trusted: bool) -> Origin:
        if place < 0:
            return Origin(0, "", trusted)
        message = self._messages[place]
        at = message.get("at_ms")
        return Origin(place, words_of(message), trusted, at if isinstance(at, int) else None)

    def _most(self, wanted: frozenset[str], fits: Callable[[Message], bool]) -> tuple[float, int]:
        """How much the turn says that says most of it, and its place; (0, -1) where none fits."""
        there = (at for at, message in enumerate(self._messages) if fits(message))
        return max(((self._share(wanted & self._words[at]), at) for at in there), default=(0.0, -1))

    def _most_beside(self, wanted: frozenset[str]) -> tuple[float, int]:
        """The same of what the agent had read before a turn and nobody said."""
        return max(((self._share(wanted & words), at) for at, words in self._beside.items()), default=(0.0, -1))

    def _share(self, words: frozenset[str]) -> float:
        return sum(1 / self._turns_with[word] for word in sorted(words))


def _stems(words: Iterable[str]) -> frozenset[str]:
    """The telling ones, cut so that most forms of a word are one."""
    return frozenset(word[:_STEM].rstrip("s") for word in words if word not in _SAY_NOTHING)
