"""The options that several commands share."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable


class Words(click.types.StringParamType):
    """Words for people or a model. In a locale without an encoding of its own their bytes are taken as UTF-8."""

    name = "text"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """`value` as text; what is no UTF-8 either stays as it is."""
        try:
            value.encode()
        except UnicodeEncodeError:  # Python could not decode the bytes, and kept them as surrogates
            with suppress(UnicodeError):
                return os.fsencode(value).decode()
        return value


class Seconds(click.FloatRange):
    """A time above zero, up to some thirty years; not a number is none."""

    name = "seconds"

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True, max=1e9)

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds: float = super().convert(value, param, ctx)
        if seconds != seconds:  # only nan is not equal to itself
            self.fail(f"{value} is no number of seconds.", param, ctx)
        return seconds


MAX_TURNS = 25


@dataclass(frozen=True, slots=True)
class Setup:
    """What a run is made of; `timeout` is in seconds, `log_path` None for the default log."""

    model: str | None
    base_url: str | None
    tools: tuple[str, ...]
    skills: str | None
    system: str
    max_turns: int
    timeout: float | None
    log_path: str | None


as_json = click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
log_path = click.option(
    "--log",
    "log_path",
    metavar="PATH",
    help="Where sessions are kept: a folder or a SQLite file.  [default: sessions.db in $DEEPSTRIKE_HOME, else in your "
    "data folder]",
)
session = click.option(
    "--session",
    "session_id",
    type=Words(),
    metavar="ID",
    help="Keep the session under this id, or go on with the one that has it.",
)

_SETUP = (
    click.option("--model", metavar="VENDOR:NAME", help="The model, as in openai:gpt-5-mini, or demo."),
    click.option("--base-url", metavar="URL", help="Any OpenAI-compatible address."),
    click.option("--tools", multiple=True, metavar="MODULE:NAME", help="A tool or function; may be repeated."),
    click.option(
        "--skills",
        type=click.Path(exists=True, file_okay=False),
        metavar="DIR",
        help="A folder of skills, which the model can load.",
    ),
    click.option("--system", type=Words(), default="", metavar="TEXT", help="The system prompt."),
    click.option(
        "--max-turns",
        type=click.IntRange(1, 1_000_000_000),
        default=MAX_TURNS,
        show_default=True,
        help="Model calls for each goal.",
    ),
    click.option("--timeout", type=Seconds(), metavar="SECONDS", help="Time for each goal."),
    log_path,
)


def setup(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say what a run is made of; `command` gets them as one `Setup`, its first argument."""

    @wraps(command)
    def collected(
        model: str | None,
        base_url: str | None,
        tools: tuple[str, ...],
        skills: str | None,
        system: str,
        max_turns: int,
        timeout: float | None,
        log_path: str | None,
        **rest: object,
    ) -> None:
        command(Setup(model, base_url, tools, skills, system, max_turns, timeout, log_path), **rest)

    decorated: Callable[..., None] = collected
    for option in reversed(_SETUP):
        decorated = option(decorated)
    return decorated
