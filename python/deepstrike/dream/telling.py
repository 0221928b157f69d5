"""Which turns are likely to say something worth remembering.

They are cut last where a session is too long. They add nothing by themselves: only what the model says is taken.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from deepstrike.memory.messages import is_trusted, role_of, words_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_SIGNS: Final = (
    r"\b(?:remember|don['’]t forget|keep in mind|note that|for (?:the )?future|from now on|next time)\b",
    r"\bmy (?:[\w'’]+ ){0,3}(?:is|are|was|name)\b",
    r"\b(?:i am|i['’]m|we are|we['’]re) (?:a|an|the|called|based|allergic|vegan|vegetarian|working|living|from|in)\b",
    r"\b(?:i|we) (?:\w+ )?(?:live|work|prefer|like|love|hate|dislike|use|need|want|own|moved|changed|switched)\b",
    r"\b(?:call me|i was born|always|never|no longer|any ?more|instead of|rather than)\b",
    r"\b(?:actually|correction|that['’]s wrong|not true|i meant)\b",
    r"[\w’' -]{2,40}(?::|=) \S",
)
_LOOKED_AT: Final = 2_000
"""Characters; a turn that tells something does so early, or is long for another reason."""
_TELLING = re.compile("|".join(_SIGNS), re.IGNORECASE)


def tells(message: Mapping[str, object]) -> bool:
    """Whether it is the user's and looks like a wish, a correction, or something about the user or the work."""
    if role_of(message) != "user" or not is_trusted(message):
        return False
    return _TELLING.search(words_of(message)[:_LOOKED_AT]) is not None
