"""Answers written the way services write them, one file a dialect, for tests that need a service's bytes."""

from __future__ import annotations

from deepstrike.testing.renderers.base import Rendered, Renderer, Spoken, Trouble
from deepstrike.testing.renderers.chat import CHAT
from deepstrike.testing.renderers.gemini import GEMINI
from deepstrike.testing.renderers.messages import MESSAGES
from deepstrike.testing.renderers.ollama import OLLAMA
from deepstrike.testing.renderers.responses import RESPONSES

__all__ = ["CHAT", "GEMINI", "MESSAGES", "OLLAMA", "RESPONSES", "Rendered", "Renderer", "Spoken", "Trouble"]
