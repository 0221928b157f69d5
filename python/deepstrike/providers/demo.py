"""The embedded demo model: fixed rules in place of a language model, so that a first run needs no key and no network.

It looks for the words of the goal in the names and descriptions of the offered tools, takes arguments for them out of
the same words, calls them once and words its answer from the results. It is no language model and says so.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deepstrike.providers.base import Finish, ModelInfo, Provider, ToolCall
from deepstrike.stream import TextDelta
from deepstrike.wire.message import AssistantBlock, CallBlock, ResultBlock, Text, Usage, UserBlock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

    from deepstrike.providers.base import ModelEvent, ModelRequest
    from deepstrike.wire.message import Part, ToolSpec, Turn

_READS = 4_000
"""How many characters of a goal are looked at; bounds the work."""

_SHOWS = 600
"""How many characters of one result the answer repeats."""

_INTERRUPTED = "The previous reply was interrupted"
"""How the kernel's delta behind a stopped reply begins: it is no goal of its own."""

_SAME_MEANING = (
    {"+", "plus", "add", "sum"},
    {"-", "minus", "subtract", "difference"},
    {"*", "times", "multiply", "product"},
    {"/", "divide", "quotient"},
    {"time", "clock", "now"},
    {"file", "path"},
    {"list", "show"},
)
_SYMBOLS = {"×": "*", "÷": "/", "−": "-"}
_EMPTY_WORDS = frozenset(
    re.findall(
        r"\S+",
        """a about all am an any are as at be by call can could do does for from get give have how i in into is it its
        let me my number of on or our please run set tell than that the them these this to tool two us use using want
        was we what what's when which who will with would you your""",
    )
)
_YES, _NO = frozenset({"true", "yes", "on"}), frozenset({"false", "no", "off"})

_TOKEN = re.compile(
    r"""(?P<quoted>"[^"\n]*"|“[^”\n]*”|`[^`\n]*`|(?<!\w)'[^'\n]*'(?!\w))
      | (?P<file>[\w./~-]*\w\.[A-Za-z]\w{0,7}\b)
      | (?P<number>(?:(?<![\w.])-)?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:[eE][+-]?\d+)?(?!\w))
      | (?P<word>\w+(?:['’-]\w+)*)
      | (?P<symbol>[-+*/×÷−])
      | (?P<end>[,;.?!\n])""",
    re.VERBOSE,
)
_NAME_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


class DemoProvider(Provider):
    """A deterministic model for first runs and offline demos. No key, no network; it is no language model.

    For each part of the goal that names an offered tool it makes one call; all calls of a goal go out in one turn and
    are never repeated. Token counts are word counts. Extensions are accepted and have no effect.
    """

    dialect = "demo"
    info = ModelInfo(id="demo")

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """See `LLMProvider.stream`. Never raises."""
        reply = _reply(request)
        for piece in _pieces(reply.text):
            yield TextDelta(piece)
        first = sum(len(_calls(turn)) for turn in request.turns)
        for number, call in enumerate(reply.calls, first):
            yield ToolCall(f"demo_{number}", call.tool, json.dumps(call.arguments, ensure_ascii=False))
        said = len(reply.text.split()) + sum(1 + len(call.arguments) for call in reply.calls)
        yield Usage(input=_count_words(request), output=said)
        yield Finish("tool_calls" if reply.calls else "stop")


@dataclass(frozen=True, slots=True)
class _Call:
    tool: str
    arguments: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class _Reply:
    text: str = ""
    calls: tuple[_Call, ...] = ()


def _reply(request: ModelRequest) -> _Reply:
    goal, since = _goal(request.turns)
    results = [turn for turn in since if isinstance(turn, ResultBlock)]
    if results:
        return _Reply(_worded(results))
    plan = [_fill(tool, tokens) for tool, tokens in _clauses(goal, request.tools)]
    calls = [item for item in plan if isinstance(item, _Call)]
    if calls:
        return _Reply(calls=tuple(call for n, call in enumerate(calls) if call not in calls[:n]))
    missing = [item for item in plan if isinstance(item, str)]
    return _Reply(missing[0] if missing else _about_itself(request.tools))


def _goal(turns: Sequence[Turn]) -> tuple[str, Sequence[Turn]]:
    """The text of the current goal and the turns after it."""
    for at in range(len(turns) - 1, -1, -1):
        turn = turns[at]
        if isinstance(turn, UserBlock):
            text = _text(turn.parts)
            if not text.startswith(_INTERRUPTED):
                return text, turns[at + 1 :]
    return "", turns


# ---- the answer


def _worded(results: Sequence[ResultBlock]) -> str:
    if len(results) == 1 and not results[0].is_error:
        text = _shown(results[0])
        if "\n" in text or len(text) > 80:
            return f"The tool {results[0].name} gave:\n{text}"
        return f"The answer is {text}, by the tool {results[0].name}."
    return "\n".join(
        f"The tool {result.name} failed: {_shown(result)}" if result.is_error else f"{result.name}: {_shown(result)}"
        for result in results
    )


def _shown(result: ResultBlock) -> str:
    text = _text(result.parts).strip() or "(nothing)"
    return text if len(text) <= _SHOWS else f"{text[:_SHOWS]} … ({len(text) - _SHOWS} characters more)"


def _about_itself(tools: Sequence[ToolSpec]) -> str:
    sees = f"the tools {', '.join(tool.name for tool in tools)}" if tools else "no tools"
    return (
        "I am the demo model built into deepstrike: a few fixed rules, no language model, so all I can do is call a "
        f"tool that your words name. I see {sees}. Choose a real model for anything else."
    )


def _pieces(text: str) -> list[str]:
    """The text in about four pieces, cut behind spaces."""
    words = re.findall(r"\S+\s*|\s+", text)
    size = max(1, -(-len(words) // 4))
    return ["".join(words[at : at + size]) for at in range(0, len(words), size)]


# ---- which tool


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str

    @property
    def key(self) -> str:
        """What it is compared by."""
        return "file" if self.kind == "file" else _stem(_SYMBOLS.get(self.text, self.text))


def _tokens(text: str) -> list[_Token]:
    found = _TOKEN.finditer(text[:_READS])
    return [_Token(match.lastgroup or "", match.group()) for match in found]


def _clauses(goal: str, tools: Sequence[ToolSpec]) -> list[tuple[ToolSpec, list[_Token]]]:
    """The parts of the goal that name a tool; a part that names none belongs to the one before it, else to the next."""
    words = {tool.name: _words_of(tool) for tool in tools}
    clauses: list[tuple[ToolSpec, list[_Token]]] = []
    waiting: list[_Token] = []
    for part in _parts(_tokens(goal)):
        tool = _named(part, tools, words)
        if tool is not None:
            clauses.append((tool, waiting + part))
            waiting = []
        elif clauses:
            clauses[-1][1].extend(part)
        else:
            waiting = waiting + part
    return clauses


def _parts(tokens: Iterable[_Token]) -> list[list[_Token]]:
    parts: list[list[_Token]] = [[]]
    for token in tokens:
        if token.kind == "end" or token.text.lower() in ("and", "then"):
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _named(
    part: Sequence[_Token], tools: Sequence[ToolSpec], words: Mapping[str, tuple[set[str], set[str]]]
) -> ToolSpec | None:
    """The tool that this part names best: by a word of its name, or by two of its description."""
    keys = {token.key for token in part if token.kind not in ("quoted", "number")}
    best, best_score = None, 1
    for tool in tools:
        name, description = words[tool.name]
        score = 3 * len(keys & name) + len(keys & description - name)
        if score > best_score:
            best, best_score = tool, score
    return best


def _words_of(tool: ToolSpec) -> tuple[set[str], set[str]]:
    name = {_stem(word) for word in _NAME_WORD.findall(tool.name)}
    name = (name - _EMPTY_WORDS) or name
    for same in _SAME_MEANING:
        if name & same:
            name = name | same
    return name, {_stem(word) for word in re.findall(r"\w+", tool.description)} - _EMPTY_WORDS


def _stem(word: str) -> str:
    word = word.lower()
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return word[:-1] if word.endswith("e") and len(word) > 4 else word


# ---- which arguments


def _fill(tool: ToolSpec, tokens: Sequence[_Token]) -> _Call | str:
    """The call, or what it lacks. Beside required parameters, optional ones are given only if the goal names them."""
    schema = json.loads(tool.parameters)
    properties: dict[str, object] = schema.get("properties", {})
    required = schema.get("required", [])
    named = {token.key for token in tokens}
    strings = sum(_kind(properties.get(name), schema) == "string" for name in required)
    supply = _Supply(tokens, _words_of(tool)[0], strings)
    arguments: dict[str, object] = {}
    for name, parameter in properties.items():
        if required and name not in required and _stem(name) not in named:
            continue
        value = supply.value(name, _shape(parameter, schema))
        if value is not None:
            arguments[name] = value
        elif name in required:
            return f"Your words name the tool {tool.name}, but I find no value for its parameter {name!r} in them."
    return _Call(tool.name, arguments)


def _shape(parameter: object, schema: Mapping[str, object]) -> Mapping[str, object]:
    """The schema of a parameter, behind references and without `null`; {} where there is nothing to go by."""
    for _ in range(8):
        if not isinstance(parameter, dict):
            return {}
        if "$ref" in parameter:
            definitions = schema.get("$defs")
            key = str(parameter["$ref"]).rpartition("/")[2]
            parameter = definitions.get(key) if isinstance(definitions, dict) else None
        elif isinstance(choices := parameter.get("anyOf"), list):
            parameter = next((choice for choice in choices if choice != {"type": "null"}), None)
        else:
            return parameter
    return {}


def _kind(parameter: object, schema: Mapping[str, object]) -> object:
    shape = _shape(parameter, schema)
    return "choice" if "enum" in shape else shape.get("type")


class _Supply:
    """The values that a clause holds, handed out in order."""

    def __init__(self, tokens: Sequence[_Token], tool_words: set[str], strings: int) -> None:
        self.tokens = tokens
        self.numbers = [token.text.replace(",", "") for token in tokens if token.kind == "number"]
        self.quoted = [token.text[1:-1] for token in tokens if token.kind == "quoted"]
        self.files = [token.text for token in tokens if token.kind == "file"]
        self.words = [
            token.text
            for token in tokens
            if token.kind == "word" and token.text.lower() not in _EMPTY_WORDS and token.key not in tool_words
        ]
        self.strings = strings

    def value(self, name: str, shape: Mapping[str, object]) -> object | None:
        """A value for the parameter, or None when the clause holds none."""
        options = shape.get("enum")
        if isinstance(options, list):
            said = {token.text.strip("\"'`“”").lower() for token in self.tokens}
            return next((option for option in options if str(option).lower() in said), None)
        kind = shape.get("type")
        if kind == "boolean":
            said = {token.text.lower() for token in self.tokens}
            return False if said & _NO else True if said & _YES else None
        if kind in ("integer", "number"):
            return self._number(whole=kind == "integer")
        if kind == "array":
            return self._list(shape.get("items"))
        return self._string(name) if kind == "string" else None

    def _number(self, *, whole: bool) -> int | float | None:
        for at, text in enumerate(self.numbers):
            number: int | float = int(text) if re.fullmatch(r"-?\d+", text) else float(text)
            if isinstance(number, int) or (not whole and math.isfinite(number)):
                del self.numbers[at]
                return number
        return None

    def _list(self, items: object) -> list[object] | None:
        kind = items.get("type") if isinstance(items, dict) else "string"
        found: list[object] = []
        if kind in ("integer", "number"):
            while (number := self._number(whole=kind == "integer")) is not None:
                found.append(number)
        elif kind == "string":
            found += self.quoted or self.files or self.words
        return found or None

    def _string(self, name: str) -> str | None:
        self.strings -= 1
        if self.files and (_stem(name) in ("path", "file", "filenam") or not self.quoted):
            return self.files.pop(0)
        if self.quoted:
            return self.quoted.pop(0)
        take = len(self.words) - max(self.strings, 0)
        if take > 0:
            said, self.words = self.words[:take], self.words[take:]
            return " ".join(said)
        return self.numbers.pop(0) if self.numbers else None


# ---- reading turns


def _text(parts: Iterable[Part]) -> str:
    return "\n".join(part.text if isinstance(part, Text) else "[an attachment]" for part in parts)


def _calls(turn: Turn) -> list[CallBlock]:
    if not isinstance(turn, AssistantBlock):
        return []
    return [part for part in turn.parts if isinstance(part, CallBlock)]


def _count_words(request: ModelRequest) -> int:
    words = len(request.system_stable.split()) + len(request.system_knowledge.split())
    for turn in request.turns:
        if isinstance(turn, AssistantBlock):
            words += sum(len(part.text.split()) for part in turn.parts if isinstance(part, Text))
            words += sum(1 + len(call.args_text.split()) for call in _calls(turn))
        else:
            words += len(_text(turn.parts).split())
    return words
