"""The collected faults of this kind of software that lie beside the checkout."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recorded import SHARED
from wire_runs import RENDERERS, Outcome, run

from deepstrike.testing.server import Raw

FILE: Path = SHARED / "cases" / "cases.json"
AREAS = (
    "anthropic-stream",
    "finish-reason",
    "ollama-stream",
    "reasoning-replay",
    "retries",
    "secrets-in-logs",
    "sse-parsing",
    "tool-args",
    "usage",
)


@dataclass(frozen=True)
class Case:
    """A fault: what the service sends, and what must come of it."""

    id: str
    area: str
    level: str
    wire: Mapping[str, Any]
    expect: Mapping[str, Any]

    def __str__(self) -> str:
        return self.id

    @property
    def kind(self) -> str:
        return str(self.wire["kind"])

    @property
    def body(self) -> bytes:
        return b"".join(self.writes)

    @property
    def writes(self) -> list[bytes]:
        return [base64.b64decode(write) for write in self.wire["writes_b64"]]

    @property
    def reset(self) -> bool:
        return "RST" in (self.wire["tail"] or "")

    def reply(self, writes: Sequence[bytes | float] | None = None) -> Raw:
        """The case's answer; `writes` in the place of its own."""
        headers = {"content-type": RENDERERS[self.kind].content_type, **(self.wire["headers"] or {})}
        sent = self.writes if writes is None else writes
        return Raw(sent, self.wire["status"], headers, "rst" if self.reset else "complete")


def load() -> dict[str, Case]:
    """The cases of the areas that providers have to hold, by id; none where they do not lie beside the checkout."""
    if not FILE.is_file():
        return {}
    rows = (row for row in json.loads(FILE.read_text("utf-8")) if row["area"] in AREAS)
    found = (Case(it["id"], it["area"], it["level"], it.get("wire") or {}, it.get("expect") or {}) for it in rows)
    return {case.id: case for case in found}


CASES = load()


async def run_case(case: Case, writes: Sequence[bytes | float] | None = None, **given: Any) -> Outcome:
    """A run whose first answer is the case's."""
    return await run(case.reply(writes), kind=case.kind, **given)
