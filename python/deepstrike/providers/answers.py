"""The words that ask for an answer in a form where the service has no field for one: what a log shows of them."""

from __future__ import annotations

from typing import Final

FINAL_TOOL: Final = "final_answer"
"""The tool that a model calls with its answer."""

BY_TOOL: Final = f"Give your final answer by calling the tool {FINAL_TOOL}, not as text."
BY_WORDS: Final = "Give your final answer as JSON only, without any other words, in the form of this JSON schema: "
