"""What a harness is asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deepstrike.errors import ConfigError
from deepstrike.given import goal_parts

if TYPE_CHECKING:
    from deepstrike.wire.message import Part


@dataclass(frozen=True, slots=True)
class Criterion:
    """Something that a good answer meets. A `required` one must be met; `weight` counts in the overall score.

    Raises `ConfigError` for an empty text and a weight that is not a finite number from 0 on.
    """

    text: str
    required: bool = True
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.text.strip():
            raise ConfigError("a criterion must be a text that is not empty, as in Criterion('has a title')")
        if not isinstance(self.required, bool):
            raise ConfigError(f"required of a criterion must be True or False, not {self.required!r}")
        number = isinstance(self.weight, int | float) and not isinstance(self.weight, bool)
        if not number or not math.isfinite(self.weight) or self.weight < 0:
            raise ConfigError(f"weight of a criterion must be a number from 0 on, not {self.weight!r}")


@dataclass(frozen=True, slots=True)
class HarnessRequest:
    """A goal, what a good answer to it meets, and extensions for the model that pursues it.

    `goal` is a text or content parts. `criteria` are texts, which are required then, or `Criterion`s; they stand with
    the goal in the prompt. Raises `ConfigError`; an extension that the provider does not know is told by the run.
    """

    goal: str | Sequence[Part]
    criteria: Sequence[str | Criterion] | None = None
    extensions: Mapping[str, object] | None = None

    def __post_init__(self) -> None:
        goal_parts(self.goal)
        if self.extensions is not None and not isinstance(self.extensions, Mapping):
            raise ConfigError('extensions must be a dict of fields by name, as in extensions={"temperature": 0.1}')
        given = self.criteria
        if given is not None and (isinstance(given, str) or not isinstance(given, Sequence)):
            raise ConfigError("criteria must be a list: write criteria=['has a title', Criterion(…)]")
        if not all(isinstance(each, str | Criterion) for each in given or ()):
            raise ConfigError("criteria must be texts or Criterion(…)")
        texts = [each.text for each in self.all_criteria]
        if len(set(texts)) < len(texts):
            raise ConfigError("two criteria are the same text: a verdict could not tell them apart")

    @property
    def all_criteria(self) -> tuple[Criterion, ...]:
        """The criteria, each as a `Criterion`."""
        return tuple(Criterion(each) if isinstance(each, str) else each for each in self.criteria or ())
