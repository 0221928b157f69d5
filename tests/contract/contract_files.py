"""The files of `contract/`, and ways to change their lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec

from deepstrike.wire.curation import Curated, Curation
from deepstrike.wire.effect import Effect, Outcome
from deepstrike.wire.input import Input
from deepstrike.wire.message import Block
from deepstrike.wire.record import Record

FOLDER = Path(__file__).parents[2] / "contract"
TYPES = {
    "inputs.jsonl": Input,
    "effects.jsonl": Effect,
    "blocks.jsonl": Block,
    "outcomes.jsonl": Outcome,
    "curations.jsonl": Curation,
    "curated.jsonl": Curated,
    "events.jsonl": Record,
}
DECODERS = {name: msgspec.json.Decoder(of) for name, of in TYPES.items()}
EFFECTS: msgspec.json.Decoder[list[Effect]] = msgspec.json.Decoder(list[Effect])
BLOCKS: msgspec.json.Decoder[list[Block]] = msgspec.json.Decoder(list[Block])
LOGS = sorted(path.name for path in (FOLDER / "logs").glob("*.jsonl"))

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def lines(name: str) -> list[bytes]:
    """The lines of one file, without their ends."""
    return (FOLDER / name).read_bytes().splitlines()


def with_unknown_fields(line: bytes) -> Iterator[bytes]:
    """The line with one more field, once for each of its objects."""
    for at in range(len(list(objects(json.loads(line))))):
        changed = json.loads(line)
        list(objects(changed))[at]["unknown_field"] = {"deep": [1, {"er": 2.5}], "text": "é"}
        yield json.dumps(changed, ensure_ascii=False, separators=(",", ":")).encode()


def objects(value: Json) -> Iterator[dict[str, Json]]:
    """Every object in a value, itself included."""
    if isinstance(value, dict):
        yield value
        for member in value.values():
            yield from objects(member)
    elif isinstance(value, list):
        for item in value:
            yield from objects(item)
