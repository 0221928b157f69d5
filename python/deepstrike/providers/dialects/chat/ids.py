"""Ids of tool calls, for services that take or understand only one form of them."""

from __future__ import annotations

import hashlib
import re
import string

from deepstrike.providers.dialects.chat.dialect import IdForm

# OpenAI's own, also at Azure: a longer id is refused. Source: the error that the service answers with.
AT_MOST_40 = IdForm(".{1,40}", "call_{hash}", string.digits + string.ascii_letters, length=24, kept=True)


def wire_id(call_id: str, name: str, form: IdForm | None) -> str:
    """`call_id` itself where the service takes it, else one made of its hash: the same always, another for another.

    `name` is the wire name of the tool that is called.
    """
    if form is None or re.fullmatch(form.fits, call_id, re.ASCII):
        return call_id
    number = int.from_bytes(hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).digest(), "big")
    signs = []
    for _ in range(form.length):
        number, rest = divmod(number, len(form.signs))
        signs.append(form.signs[rest])
    return form.made.format(name=name, hash="".join(signs))
