"""Pass rates as a picture."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from deepstrike.harness.evaluate.report import shown_share
from deepstrike.skills.metadata import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deepstrike.harness.evaluate.report import Evaluation, Tally

_LEFT: Final = 20
_WIDTH: Final = 600
_ROW: Final = 64
_CELL: Final = 12
_PER_LINE: Final = _WIDTH // _CELL


def plot(evaluations: Sequence[Evaluation]) -> str:
    """An SVG document: for each evaluation its pass rate with the interval, and below it a square for each case.

    A square is green where every trial of its case passed, red where none did, grey where nothing was measured.
    """
    top, parts = 30, [_axis()]
    for evaluation in evaluations:
        parts += [*_rate(evaluation, top), *_cases(evaluation, top + 34)]
        top += _ROW + _CELL * (1 + len(evaluation.cases) // _PER_LINE)
    frame = f'width="{_WIDTH + 2 * _LEFT}" height="{top}" viewBox="0 0 {_WIDTH + 2 * _LEFT} {top}"'
    style = 'font-family="sans-serif" font-size="12"'
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {frame} {style}>', *parts, "</svg>", ""])


def _axis() -> str:
    marks = (
        f'<text x="{_at(share):.1f}" y="14" text-anchor="middle">{share:.0%}</text>'
        for share in (0, 0.25, 0.5, 0.75, 1)
    )
    return "\n".join(marks)


def _rate(evaluation: Evaluation, top: int) -> Iterator[str]:
    interval = evaluation.pass_rate
    said = "nothing was measured" if interval is None else shown_share(interval)
    label = escape(f"{one_line(evaluation.name) or evaluation.session_id}: {said}")
    yield f'<text x="{_LEFT}" y="{top}">{label}</text>'
    yield f'<line x1="{_at(0)}" x2="{_at(1)}" y1="{top + 16}" y2="{top + 16}" stroke="#ccc"/>'
    if interval is not None:
        ends = f'x1="{_at(interval.low):.1f}" x2="{_at(interval.high):.1f}"'
        yield f'<line {ends} y1="{top + 16}" y2="{top + 16}" stroke="#246" stroke-width="3"/>'
        yield f'<circle cx="{_at(interval.value):.1f}" cy="{top + 16}" r="5" fill="#246"/>'


def _cases(evaluation: Evaluation, top: int) -> Iterator[str]:
    for number, case in enumerate(evaluation.cases):
        x, y = _LEFT + _CELL * (number % _PER_LINE), top + _CELL * (number // _PER_LINE)
        title = escape(f"{one_line(case.case)}: {case.passed}/{case.trials}")
        yield (
            f'<rect x="{x}" y="{y}" width="{_CELL - 2}" height="{_CELL - 2}" fill="{_colour(case)}">'
            f"<title>{title}</title></rect>"
        )


def _colour(case: Tally) -> str:
    return f"hsl({round(120 * case.share)} 60% 45%)" if case.trials else "#bbb"


def _at(share: float) -> float:
    return _LEFT + _WIDTH * share
