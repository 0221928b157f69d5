"""`skill(name, file)`: the body of a skill, or a file of its folder."""

from __future__ import annotations

import json
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Final

from deepstrike.errors import ToolError
from deepstrike.host.library import FILES_SECONDS
from deepstrike.host.steady import NoAnswer, apart
from deepstrike.skills.allowed import globs
from deepstrike.skills.metadata import MAX_NAME
from deepstrike.tools.failures import failure, failure_of
from deepstrike.tools.results import bounded
from deepstrike.tools.threads import TooManyHungThreads, run_in_thread
from deepstrike.wire.message import Text, ToolResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepstrike.execution.base import Invocation
    from deepstrike.host.library import Library
    from deepstrike.host.session import Session
    from deepstrike.skills.metadata import SkillMetadata
    from deepstrike.skills.registry import SkillRegistry

_NEAR: Final = 5
_KNOWN: Final = 50
_SHOWN: Final = 200


async def skill(_: Session, library: Library, invocation: Invocation) -> ToolResult:
    """The body of the skill `name` with the list of its files, or the text of one of them.

    Only skills that were offered when the run began: what they may do is known to the kernel. Whatever is wrong is an
    error result. Raises nothing but `CancelledError`.
    """
    wanted = json.loads(invocation.args_text)
    name, file = wanted["name"].strip(), (wanted.get("file") or "").strip()
    found = next((offered for offered in library.offered if offered.name == name), None)
    if library.skills is None or found is None:
        return _unknown(name, [offered.name for offered in library.offered])
    try:
        text = await apart(run_in_thread(partial(_text, library.skills, found, file)), FILES_SECONDS)
    except (ToolError, TooManyHungThreads) as error:
        return failure_of(error)
    except NoAnswer:
        return failure("timeout", f"the skill {name!r} could not be read within {FILES_SECONDS:g} s; go on without it")
    return ToolResult((Text(bounded(text)),))


def _text(registry: SkillRegistry, offered: SkillMetadata, file: str) -> str:
    if file:
        return registry.read(offered.name, file)
    text = registry.load(offered.name).text
    allowed = globs(offered.allowed_tools)
    if not allowed:
        return text
    return f"{text}\n\n[Until another skill is loaded only these tools may be used: {', '.join(allowed)}]"


def _unknown(name: str, known: Sequence[str]) -> ToolResult:
    shown = repr(name if len(name) <= _SHOWN else name[:_SHOWN] + "…")
    # The comparison takes the square of a name's length, and no skill's is longer than this.
    near = get_close_matches(name[:MAX_NAME], known, _NEAR)
    meant = f"did you mean {', '.join(near)}? " if near else ""
    more = f", and {len(known) - _KNOWN} more" if len(known) > _KNOWN else ""
    listed = ", ".join(known[:_KNOWN]) or "none"
    return failure_of(ToolError(f"there is no skill {shown}", hint=f"{meant}known skills: {listed}{more}"))
