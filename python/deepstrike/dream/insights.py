"""What a model's answer says is worth remembering."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from deepstrike.memory.claims import folded, tidy
from deepstrike.output.extract import documents

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST: Final = 50
"""More insights of one session are not taken."""
LONGEST: Final = 1_000
"""A longer text is no insight."""
_UNSAID: Final = 0.5


class Insight(NamedTuple):
    """Something worth remembering, and how sure the model is of it, from 0 to 1."""

    text: str
    confidence: float


def parsed(answer: str) -> list[Insight] | None:
    """The insights in an answer of the form `{"insights": [{"text", "confidence"}]}`; None where there is no such form.

    Fences and words around the JSON are passed over. What in the list is no insight is left out: no text, one that is
    empty or too long, a confidence that is no number. Of two that say the same the surer one is taken. A confidence
    that is not given counts as 0.5.
    """
    for document in documents(answer):
        found = json.loads(document)
        if isinstance(found, dict) and isinstance(listed := found.get("insights"), list):
            return _insights(listed)
    return None


def _insights(listed: list[object]) -> list[Insight]:
    best: dict[str, Insight] = {}
    for each in listed:
        insight = _insight(each) if isinstance(each, dict) else None
        if insight is None:
            continue
        said = folded(insight.text)
        if said not in best or insight.confidence > best[said].confidence:
            best[said] = insight
    return list(best.values())[:MOST]


def _insight(each: Mapping[str, object]) -> Insight | None:
    text, sure = each.get("text"), each.get("confidence", _UNSAID)
    if not isinstance(text, str) or not folded(text) or len(text) > LONGEST:
        return None
    if isinstance(sure, bool) or not isinstance(sure, int | float):
        return None
    return Insight(tidy(text), float(min(max(sure, 0), 1)))
