"""How a model is asked for an answer in a form: by a field of the service, by a tool, or by words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from deepstrike.errors import ConfigError
from deepstrike.providers.answers import BY_TOOL, BY_WORDS, FINAL_TOOL
from deepstrike.providers.base import OutputSchema, Provider
from deepstrike.providers.dialects.chat.dialect import NO_TOOLS
from deepstrike.wire.message import Err, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepstrike.output.form import Form
    from deepstrike.providers.base import LLMProvider
    from deepstrike.wire.message import Validated

OutputMode = Literal["auto", "native", "tool", "prompted"]
MODES: Final = ("auto", "native", "tool", "prompted")

_DESCRIPTION: Final = (
    "Gives the final answer, and with it ends the task. Call it once, alone, when everything else is done."
)


@dataclass(frozen=True, slots=True)
class Way:
    """What goes out with every request of a run so that its answer has a form, and how the answer is judged.

    At most one of `native` (a field of the service), `tool` (the model calls it with its answer) and `instructions` for
    the form alone is given; `instructions` also say when the tool is to be called.
    """

    form: Form
    native: OutputSchema | None = None
    tool: ToolSpec | None = None
    instructions: str = ""

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """What is offered beside the tools of the run."""
        return () if self.tool is None else (self.tool,)

    def is_answer(self, name: str) -> bool:
        """Whether a call of this name is the answer."""
        return self.tool is not None and name == self.tool.name

    def check(self, text: str) -> Validated:
        """As `Form.check`; the objection says how to answer."""
        found = self.form.check(text)
        if self.tool is not None and isinstance(found, Err):
            return Err(found.kind, f"{found.message}; answer by calling {self.tool.name}")
        return found

    def system(self, prompt: str) -> str:
        """The system prompt with the instructions behind it."""
        return "\n\n".join(text for text in (prompt, self.instructions) if text)


def way_of(form: Form, mode: OutputMode, provider: LLMProvider, tools: Sequence[ToolSpec]) -> Way:
    """The way for a run that offers `tools`.

    `auto` is native where the provider is `structured`. Else, where the run has tools and the model takes them, the
    answer is a call of one more: so it is told apart from what the model says on the way. Else the form stands in the
    instructions, which every model takes, and which lets the answer stream.

    Raises `ConfigError` if a tool of the user's has the name that the answer's tool needs.
    """
    chosen = _chosen(provider, tools) if mode == "auto" else mode
    match chosen:
        case "native":
            return Way(form, native=OutputSchema(form.name, form.schema))
        case "prompted":
            return Way(form, instructions=BY_WORDS + form.schema)
    if any(tool.name == FINAL_TOOL for tool in tools):
        raise ConfigError(
            f"a tool is called {FINAL_TOOL!r}, which is the name of the tool that takes the answer of output_type: "
            'rename it, or set output_mode="prompted"'
        )
    return Way(form, tool=ToolSpec(FINAL_TOOL, _DESCRIPTION, form.schema, "read"), instructions=BY_TOOL)


def require_native(provider: LLMProvider) -> None:
    """Raises `ConfigError` if the provider would leave the form out of its requests."""
    if isinstance(provider, Provider) and not provider.sends_form():
        raise ConfigError(
            f'output_mode="native" needs a service that takes the schema of an answer, and {type(provider).__name__} '
            'sends none: use output_mode="auto", "tool" or "prompted", or name the profile of a server that takes it'
        )


def _chosen(provider: LLMProvider, tools: Sequence[ToolSpec]) -> Literal["native", "tool", "prompted"]:
    if not isinstance(provider, Provider):
        return "tool" if tools else "prompted"
    if provider.structured:
        return "native"
    return "tool" if tools and NO_TOOLS not in provider.info.traits else "prompted"
