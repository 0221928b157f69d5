"""`python -m bench.context.picture > docs/context.svg`: the slots over a long run of generated dialogues."""

from __future__ import annotations

from bench.context.dialogues import Model, generated
from bench.context.ours import Session, tools

_WINDOW = 32_000
_WIDTH, _HEIGHT, _LEFT, _TOP = 900, 300, 60, 30
_COLOURS = ("#7b5ea7", "#c98f2b", "#3f8f6b", "#5b8fc9")
_NAMES = ("slots 1 and 2, tools", "turns[0]", "history", "window")


def samples() -> list[tuple[int, int, int]]:
    """Tokens of the head, of `turns[0]` and of the history at each model call."""
    dialogues = generated(40, 7)
    session = Session(dialogues[0].system, tools(dialogues), _WINDOW)
    found = []
    for dialogue in dialogues:
        for turn in dialogue.turns:
            if isinstance(turn, Model):
                found.append(session.slots())
            session.take(turn)
    return found


def svg(found: list[tuple[int, int, int]]) -> str:
    """The picture."""
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 20} {_HEIGHT + 90}" '
        'font-family="sans-serif" font-size="13">',
        f'<rect width="{_LEFT + _WIDTH + 20}" height="{_HEIGHT + 90}" fill="#fff"/>',
    ]
    for layer in (2, 1, 0):
        edge = " ".join(_point(at, len(found), sum(sample[: layer + 1])) for at, sample in enumerate(found))
        lines.append(f'<polygon fill="{_COLOURS[layer]}" points="{edge} {_corner(1)} {_corner(0)}"/>')
    lines.append(f'<path d="M{_LEFT} {_TOP}h{_WIDTH}" stroke="{_COLOURS[3]}" stroke-dasharray="6 4"/>')
    for at, (name, colour) in enumerate(zip(_NAMES, _COLOURS, strict=True)):
        x = _LEFT + at * 200
        lines.append(f'<rect x="{x}" y="{_TOP + _HEIGHT + 30}" width="12" height="12" fill="{colour}"/>')
        lines.append(f'<text x="{x + 18}" y="{_TOP + _HEIGHT + 41}">{name}</text>')
    lines.append(f'<text x="4" y="{_TOP + 5}">{_WINDOW:,}</text><text x="30" y="{_TOP + _HEIGHT}">0</text>')
    lines.append(f'<text x="{_LEFT}" y="{_TOP + _HEIGHT + 18}">{len(found)} model calls, tokens of each request</text>')
    return "\n".join([*lines, "</svg>"])


def _point(at: int, count: int, tokens: int) -> str:
    x = _LEFT + _WIDTH * at / max(1, count - 1)
    return f"{x:.1f},{_TOP + _HEIGHT * (1 - tokens / _WINDOW):.1f}"


def _corner(side: int) -> str:
    return f"{_LEFT + _WIDTH * side},{_TOP + _HEIGHT}"


if __name__ == "__main__":
    print(svg(samples()))
