"""What a service's error means: status, code and type of the body → one of our exceptions.

Tables, because services differ only in words. Codes are looked at before texts; texts are matched only where a service
gives nothing else (context overflow, see the wire reference 10.4).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from deepstrike.errors import (
    BadRequest,
    ContentFiltered,
    ContextOverflow,
    Overloaded,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    Unauthorized,
    Unreachable,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepstrike.providers.redact import Mask

_OVERFLOW_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error"})
_OVERFLOW_TEXTS = (
    "maximum context length",
    "prompt is too long",
    "range of input length should be",
    "exceeded model token limit",
    "input token count exceeds",
    "exceeds the available context size",
    "exceed context limit",
)
_BY_CODE: dict[str, type[ProviderError]] = {
    "insufficient_quota": QuotaExhausted,
    "exceeded_current_quota_error": QuotaExhausted,
    "billing_hard_limit_reached": QuotaExhausted,
    "arrearage": QuotaExhausted,
    "content_filter": ContentFiltered,
    "data_inspection_failed": ContentFiltered,
    "invalid_api_key": Unauthorized,
    "authentication_error": Unauthorized,
    "permission_error": Unauthorized,
    "rate_limit_exceeded": RateLimited,
    "rate_limit_error": RateLimited,
    "rate_limit_reached_error": RateLimited,
    "engine_overloaded_error": Overloaded,
    "overloaded_error": Overloaded,
    "api_error": Overloaded,
    "timeout_error": Overloaded,
    "billing_error": QuotaExhausted,
    "server_error": Overloaded,
    "slow_down": Overloaded,
    "invalid_request_error": BadRequest,
}
_BY_STATUS: dict[int, type[ProviderError]] = {
    401: Unauthorized,
    402: QuotaExhausted,
    403: Unauthorized,
    408: Overloaded,
    409: Overloaded,
    429: RateLimited,
    498: Overloaded,
}
# A request that failed with one of these codes is not helped by its status: the code decides.
_FINAL = (QuotaExhausted, ContentFiltered, Unauthorized)
_REMEDY: dict[type[ProviderError], str] = {
    Unauthorized: "check the key, and whether it may use this model",
    QuotaExhausted: "the account's quota or credit is used up: top it up or use another key",
    RateLimited: "wait, or send fewer requests at once (max_concurrency)",
    ContextOverflow: "shorten the prompt or use a model with a larger window",
    Overloaded: "the service is failing or overloaded: try later",
    BadRequest: "correct the request as it says",
    ContentFiltered: "the service's content filter refused it: rephrase the prompt",
}
_SHOWN = 400
_PATHS = ("/chat/completions", "/responses", "/messages", "/api/chat")
_delay = re.compile(r"\d{1,9}(\.\d{1,9})?s").fullmatch


class Detail(msgspec.Struct, gc=False):
    """One of the `details` of a Google error."""

    reason: str | None = None
    retry_delay: str | None = msgspec.field(default=None, name="retryDelay")


class Upstream(msgspec.Struct, gc=False):
    """`metadata` of a router's error: what the service behind it said."""

    raw: msgspec.Raw = msgspec.Raw()


class ErrorBody(msgspec.Struct, gc=False):
    """The fields of an error object; any may be missing, `code` and `status` may be numbers or words."""

    message: str | None = None
    type: str | None = None
    code: str | float | None = None
    status: str | float | None = None
    status_code: int | None = None
    details: msgspec.Raw = msgspec.Raw()
    param: msgspec.Raw = msgspec.Raw()
    metadata: msgspec.Raw = msgspec.Raw()

    @property
    def told(self) -> str:
        """The message, with that of the service behind a router."""
        return ": ".join(filter(None, (self.message, _upstream(self.metadata))))


class _Flat(ErrorBody, gc=False):
    """An answer with `error` as an object or a text (xAI), or with the fields at the top (old vLLM)."""

    error: ErrorBody | str | None = None
    detail: str | None = None


_decode = msgspec.json.Decoder(_Flat).decode
_decode_list = msgspec.json.Decoder(list[_Flat]).decode
_decode_details = msgspec.json.Decoder(list[Detail]).decode
_decode_upstream = msgspec.json.Decoder(Upstream).decode
_decode_text = msgspec.json.Decoder(str).decode


@dataclass(frozen=True, slots=True)
class Words:
    """What only one service says, in lower case: its error codes, types, reasons (numbers as text) and the request
    fields that its errors name, and pieces of `texts` (the message and the details of a Google error) where it has no
    code; each with what it means. `remedies` say what to do, by the same words and pieces."""

    codes: Mapping[str, type[ProviderError]] = field(default_factory=dict)
    texts: Mapping[str, type[ProviderError]] = field(default_factory=dict)
    remedies: Mapping[str, str] = field(default_factory=dict)


class Faults:
    """Makes exceptions of a service's errors; `mask` hides bound secrets in what they tell."""

    __slots__ = ("_own", "mask")

    def __init__(self, mask: Mask, words: Words | None = None) -> None:
        self.mask = mask
        self._own = words or Words()

    def http(
        self,
        status: int,
        content_type: str,
        body: bytes,
        request_id: str | None,
        *,
        target: str | None = None,
        url: str = "",
    ) -> tuple[ProviderError, float | None]:
        """The exception for an HTTP answer that is no stream, and the wait in seconds that its body asks for.

        Such an answer has an error status, or 200 with something else in it. `target` is where it sends us instead,
        `url` the address that the user gave.
        """
        content_type = self.mask(content_type)
        found, hint = _read(body), _place_hint(status, target, url, self.mask)
        if found is None or not (found.message or found.code):
            return _no_error_object(status, content_type, body, request_id, self.mask, hint), None
        odd = "" if status >= 300 else f" with {content_type or 'no content type'}, not a stream"
        return self._fault(found, status, f"HTTP {status}{odd}", request_id, hint), _retry_delay(found)

    def stream(self, payload: bytes) -> ProviderError:
        """The exception for an error object inside a stream that began well."""
        found = _read(payload)
        if found is None or not (found.message or found.code):
            found = ErrorBody(message=payload.decode("utf-8", "replace"))
        return self.told(found)

    def told(self, found: ErrorBody) -> ProviderError:
        """The exception for an error that stands inside an answer."""
        return self._fault(found, 200, "the service reported an error inside its answer", None)

    def _fault(
        self, found: ErrorBody, status: int, intro: str, request_id: str | None, hint: str = ""
    ) -> ProviderError:
        true_status = _status(found, status)
        kind = self._kind(found, true_status)
        message = self.mask(found.told or str(found.code or "no message"))[:_SHOWN]
        return kind(
            f"{intro}: {message} ({self._remedy(found, kind)}{hint})", status=true_status, request_id=request_id
        )

    def _remedy(self, found: ErrorBody, kind: type[ProviderError]) -> str:
        words, text = _words(found), _text(found)
        own = (remedy for said, remedy in self._own.remedies.items() if said in words or said in text)
        general = (_REMEDY[base] for base in kind.__mro__ if base in _REMEDY)
        return next(own, None) or next(general, "see the service's message")

    def _kind(self, found: ErrorBody, status: int) -> type[ProviderError]:
        words, text = _words(found), _text(found)
        if any(word in _OVERFLOW_CODES for word in words) or _reads_as_overflow(text, status):
            return ContextOverflow
        by_text = (kind for piece, kind in self._own.texts.items() if piece in text)
        by_own_code = (self._own.codes[word] for word in words if word in self._own.codes)
        if own := next(by_text, None) or next(by_own_code, None):
            return own  # a service's own words say more than a status that many things share
        by_code = next((_BY_CODE[word] for word in words if word in _BY_CODE), None)
        by_status = _BY_STATUS.get(status) or _by_hundreds(status)
        if by_code is not None and (by_code in _FINAL or status < 300 or issubclass(by_code, by_status)):
            return by_code
        return by_status


def _words(found: ErrorBody) -> list[str]:
    """What the error calls itself, the most telling first."""
    named = [detail.reason for detail in _details(found)] + [_param(found), found.code, found.type, found.status]
    return [f"{word:g}" if isinstance(word, float) else str(word).lower() for word in named if word is not None]


def _text(found: ErrorBody) -> str:
    """What the error says in words, in lower case, its details included."""
    return f"{found.told} {bytes(found.details).decode('utf-8', 'replace')}".lower()


def _param(found: ErrorBody) -> str | None:
    """The request field that the error names, if it names one by a text."""
    raw = bytes(found.param)
    return raw[1:-1].decode("utf-8", "replace") if raw[:1] == b'"' else None


def _details(found: ErrorBody) -> list[Detail]:
    try:
        return _decode_details(found.details) if found.details else []
    except msgspec.DecodeError:
        return []


def _upstream(metadata: msgspec.Raw) -> str:
    """`metadata.raw` of OpenRouter: the other service's answer, as text or as the object itself."""
    try:
        raw = bytes(_decode_upstream(metadata).raw) if metadata else b""
        return _decode_text(raw) if raw[:1] == b'"' else raw.decode("utf-8", "replace").removeprefix("null")
    except msgspec.DecodeError:
        return ""


def _retry_delay(found: ErrorBody) -> float | None:
    """`google.rpc.RetryInfo`: seconds as text, such as "37s" or "0.5s"."""
    told = next((detail.retry_delay for detail in _details(found) if detail.retry_delay), "")
    return float(told[:-1]) if _delay(told) else None


def _by_hundreds(status: int) -> type[ProviderError]:
    return BadRequest if 300 <= status < 500 else Overloaded


def _reads_as_overflow(text: str, status: int) -> bool:
    return status in (200, 400, 413, 422) and any(words in text for words in _OVERFLOW_TEXTS)


def _status(found: ErrorBody, status: int) -> int:
    """The HTTP status, or under 200 the one that the error object names."""
    if status >= 300:
        return status
    for named in (found.status_code, found.code):
        if isinstance(named, int | float) and 400 <= named < 600:
            return int(named)
    return status


def _read(body: bytes) -> ErrorBody | None:
    try:
        answers = _decode_list(body) if body.lstrip()[:1] == b"[" else [_decode(body)]
    except (msgspec.DecodeError, RecursionError):
        return None
    if not answers:
        return None
    answer = answers[0]
    if isinstance(answer.error, str):
        return ErrorBody(answer.error, answer.type, answer.code)
    if answer.error is not None:
        return answer.error
    return answer if answer.message else ErrorBody(answer.detail, answer.type, answer.code)


def _place_hint(status: int, target: str | None, url: str, mask: Mask) -> str:
    """What is wrong with the address, where status and address tell."""
    if 300 <= status < 400:
        shown = mask.beginning((target or "").encode(errors="replace"), _SHOWN)
        place = f" ({shown})" if shown else ""
        return f"; redirects are not followed: set base_url to the final address{place}"
    path = urlsplit(url).path
    end = next((end for end in _PATHS if path.endswith(end)), "")
    return f"; base_url must end before {end}, which is added to it" if status in (404, 405) and end else ""


def _no_error_object(
    status: int, content_type: str, body: bytes, request_id: str | None, mask: Mask, hint: str
) -> ProviderError:
    start = mask.beginning(body, _SHOWN).strip() or "(empty)"
    what = f"HTTP {status} with {content_type or 'no content type'}: {start}"
    if status >= 300:
        kind = _BY_STATUS.get(status) or _by_hundreds(status)
        return kind(f"{what} ({_REMEDY[kind]}{hint})", status=status, request_id=request_id)
    return Unreachable(
        f"{what} (no event stream: check base_url, and that no proxy or sign-in page answers in between)",
        status=status,
        code="not_a_stream",
        retryable=False,
        request_id=request_id,
    )
