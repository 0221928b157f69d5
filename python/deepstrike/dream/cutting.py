"""A session as the model is shown it: whole, or cut so that every turn keeps its share."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from deepstrike.dream.telling import tells
from deepstrike.kernel import count
from deepstrike.memory.messages import is_trusted, role_of, speaker_of, words_of
from deepstrike.text import well_formed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOST_TOKENS: Final = 24_000
"""A longer session is cut to this, or to what the window has room for."""
_SHARES: Final = {"telling": 6, "user": 3, "assistant": 2, "outside": 1}
_SMALLEST: Final = 160
"""Characters of a turn, its frame included, below which turns are left out rather than cut."""
_FRAME: Final = 60
_TRIES: Final = 8
_CHARACTERS: Final = 5
_MOST_CHARACTERS: Final = 12
"""A text with more characters a token is not counted before it is cut."""
_BREAKS: Final = {code: f"\\u{code:04x}" for code in (0x7F, *range(0x80, 0xA0), 0x2028, 0x2029)}
"""What JSON leaves as it is although it may be read as the end of a line, or not at all."""
_NOTE: Final = "The conversation has {turns} turns and was cut to fit. What is missing is marked."


class _Turn(NamedTuple):
    number: int
    speaker: str
    text: str
    kind: str

    def cut(self, allowed: int) -> _Turn:
        """At most so many characters of the text and what says how many are missing."""
        if len(self.text) <= allowed:
            return self
        begin, end = allowed - allowed // 3, allowed // 3
        missing = f" [… {len(self.text) - begin - end} characters left out …] "
        return self._replace(text=self.text[:begin] + missing + self.text[len(self.text) - end :])


class Shown(NamedTuple):
    """The conversation as JSON lines, and a note on what is left out of it, empty where it is whole."""

    lines: str
    note: str


def shown(messages: Sequence[Mapping[str, object]], model: str, tokens: int) -> Shown:
    """The conversation in about `tokens` tokens of `model` at most.

    A turn keeps the more the likelier it says something worth remembering: what the user says before what the agent
    says, and text from tools last; a short turn stays whole. Where there are too many turns for that, the likely ones
    are kept, and of the others as many as there is room for, evenly. Both is told in the text.
    """
    there = [turn for number, message in enumerate(messages) if (turn := _turn(number, message)).text]
    if sum(len(turn.text) for turn in there) <= tokens * _MOST_CHARACTERS:
        whole = _lines(there)
        if count(whole, model) <= tokens:
            return Shown(whole, "")
    return Shown(_cut(there, model, tokens), _NOTE.format(turns=len(messages)))


def _cut(turns: Sequence[_Turn], model: str, tokens: int) -> str:
    """As much as fits, found by trying: a token is some characters, more or less by the script."""
    room = tokens * _CHARACTERS
    for _ in range(_TRIES):
        lines = _lines(_fitted(turns, room))
        weight = count(lines, model)
        if weight <= tokens:
            return lines
        room = room * tokens * 9 // (weight * 10)
    return ""


def _turn(number: int, message: Mapping[str, object]) -> _Turn:
    role, speaker = role_of(message), speaker_of(message)
    outside = not is_trusted(message)
    kind = "outside" if outside else "telling" if tells(message) else "assistant" if role == "assistant" else "user"
    return _Turn(number, speaker or role, well_formed(words_of(message)).strip(), kind)


def _lines(turns: Sequence[_Turn]) -> str:
    """One turn a line. As JSON no text can look like another turn, or like the end of the conversation."""
    lines: list[str] = []
    due = 0
    for turn in turns:
        if turn.number > due:
            lines.append(json.dumps({"left_out": f"{turn.number - due} turns"}))
        due = turn.number + 1
        line: dict[str, object] = {"turn": turn.number, "from": turn.speaker, "text": turn.text}
        if turn.kind == "outside":
            line["untrusted"] = True
        lines.append(json.dumps(line, ensure_ascii=False).translate(_BREAKS))
    return "\n".join(lines)


def _fitted(turns: Sequence[_Turn], room: int) -> list[_Turn]:
    """The turns in about so many characters."""
    kept = _spread(turns, max(room // _SMALLEST, 1))
    for_text = max(room - _FRAME * len(kept), len(kept))
    share = _share([(len(turn.text), _SHARES[turn.kind]) for turn in kept], for_text)
    return [turn.cut(int(share * _SHARES[turn.kind])) for turn in kept]


def _spread(turns: Sequence[_Turn], most: int) -> list[_Turn]:
    """At most so many of them: the telling ones first, the others evenly, in their order."""
    if len(turns) <= most:
        return list(turns)
    telling = _evenly([turn for turn in turns if turn.kind == "telling"], most)
    others = _evenly([turn for turn in turns if turn.kind != "telling"], most - len(telling))
    return sorted([*telling, *others])


def _evenly(turns: Sequence[_Turn], most: int) -> list[_Turn]:
    if len(turns) <= most:
        return list(turns)
    return [turns[at * len(turns) // most] for at in range(most)]


def _share(lengths: Sequence[tuple[int, int]], room: int) -> float:
    """How many characters a share of one is, so that all lengths, cut to their shares, fill the room."""
    left, shares = room, sum(weight for _, weight in lengths)
    for length, weight in sorted(lengths, key=lambda pair: pair[0] / pair[1]):
        if length * shares > left * weight:
            return left / shares
        left, shares = left - length, shares - weight
    return float(room)
