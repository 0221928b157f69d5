"""The table of a bench run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.figures import Figure


@dataclass(frozen=True)
class Line:
    """A figure as it was measured: our median, the floor's, how many samples ours had."""

    figure: Figure
    ours: float
    floor: float | None
    samples: int

    @property
    def value(self) -> float:
        """What `must` and `aim` bound."""
        return self.ours if self.floor is None else self.ours / self.floor

    @property
    def verdict(self) -> str:
        """`aim`, `ok` or `missed`; nothing where the figure is not judged."""
        if self.figure.aim is not None and self.value <= self.figure.aim:
            return "aim"
        if self.figure.must is None:
            return ""
        return "ok" if self.value <= self.figure.must else "missed"

    def plain(self) -> dict[str, object]:
        """For JSON."""
        return {
            "case": self.figure.case,
            "name": self.figure.name,
            "unit": self.figure.unit,
            "ours": self.ours,
            "floor": self.floor,
            "floor_name": self.figure.floor,
            "value": self.value,
            "must": self.figure.must,
            "aim": self.figure.aim,
            "verdict": self.verdict,
            "samples": self.samples,
        }


def number(value: float | None) -> str:
    """Three significant digits, or a dash."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def table(lines: Sequence[Line]) -> str:
    """A Markdown table."""
    rows = ["| figure | ours | floor | ratio | must | aim | |", "|---|--:|--:|--:|--:|--:|---|"]
    for line in lines:
        figure, sign = line.figure, "" if line.floor is None else " ×"
        floor = "–" if line.floor is None else f"{number(line.floor)} {figure.unit} ({figure.floor})"
        ratio = "–" if line.floor is None else f"{line.value:.2f} ×"
        bounds = f"{bound(figure.must, sign)} | {bound(figure.aim, sign)}"
        rows.append(
            f"| {figure.name} | {number(line.ours)} {figure.unit} | {floor} | {ratio} | {bounds} | {line.verdict} |"
        )
    return "\n".join(rows)


def bound(most: float | None, sign: str) -> str:
    """An upper bound, or a dash."""
    return "–" if most is None else f"≤ {number(most)}{sign}"
