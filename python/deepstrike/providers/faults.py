"""What a service's error means: status, code and type of the body → one of our exceptions.

Tables, because services differ only in words. Codes are looked at before texts; texts are matched only where a service
gives nothing else (context overflow, see the wire reference 10.4).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

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
_delay = re.compile(r"\d{1,9}(\.\d{1,9})?s").fullmatch


class Detail(msgspec.Struct, gc=False):
    """One of the `details` of a Google error."""

    reason: str | None = None
    retry_delay: str | None = msgspec.field(default=None, name="retryDelay")


class ErrorBody(msgspec.Struct, gc=False):
    """The fields of an error object; any may be missing, `code` and `status` may be numbers or words."""

    message: str | None = None
    type: str | None = None
    code: str | float | None = None
    status: str | float | None = None
    status_code: int | None = None
    details: msgspec.Raw = msgspec.Raw()


class _Flat(ErrorBody, gc=False):
    """An answer with `error` as an object or a text (xAI), or with the fields at the top (old vLLM)."""

    error: ErrorBody | str | None = None
    detail: str | None = None


_decode = msgspec.json.Decoder(_Flat).decode
_decode_list = msgspec.json.Decoder(list[_Flat]).decode
_decode_details = msgspec.json.Decoder(list[Detail]).decode


@dataclass(frozen=True, slots=True)
class Words:
    """What only one service says, in lower case: its error codes, types and reasons (numbers as text), and pieces of
    `texts` where it has no code; each with what it means."""

    codes: Mapping[str, type[ProviderError]] = field(default_factory=dict)
    texts: Mapping[str, type[ProviderError]] = field(default_factory=dict)


class Faults:
    """Makes exceptions of a service's errors; `mask` hides bound secrets in what they tell."""

    __slots__ = ("_codes", "_texts", "mask")

    def __init__(self, mask: Mask, words: Words | None = None) -> None:
        own = words or Words()
        self.mask = mask
        self._codes = {**_BY_CODE, **own.codes}
        self._texts = own.texts

    def http(
        self, status: int, content_type: str, body: bytes, request_id: str | None
    ) -> tuple[ProviderError, float | None]:
        """The exception for an HTTP answer that is no stream, and the wait in seconds that its body asks for.

        Such an answer has an error status, or 200 with something else in it.
        """
        found = _read(body)
        if found is None or not (found.message or found.code):
            return _no_error_object(status, content_type, body, request_id, self.mask), None
        odd = "" if status >= 300 else f" with {content_type or 'no content type'}, not a stream"
        return self._fault(found, status, f"HTTP {status}{odd}", request_id), _retry_delay(found)

    def stream(self, payload: bytes) -> ProviderError:
        """The exception for an error object inside a stream that began well."""
        found = _read(payload)
        if found is None or not (found.message or found.code):
            found = ErrorBody(message=payload.decode("utf-8", "replace"))
        return self.told(found)

    def told(self, found: ErrorBody) -> ProviderError:
        """The exception for an error that stands inside an answer."""
        return self._fault(found, 200, "the service reported an error inside its answer", None)

    def _fault(self, found: ErrorBody, status: int, intro: str, request_id: str | None) -> ProviderError:
        true_status = _status(found, status)
        kind = self._kind(found, true_status)
        message = self.mask(found.message or str(found.code or "no message"))[:_SHOWN]
        remedy = _REMEDY.get(kind, "see the service's message")
        return kind(f"{intro}: {message} ({remedy})", status=true_status, request_id=request_id)

    def _kind(self, found: ErrorBody, status: int) -> type[ProviderError]:
        words = _words(found)
        if any(word in _OVERFLOW_CODES for word in words) or _reads_as_overflow(found.message, status):
            return ContextOverflow
        text = (found.message or "").lower()
        by_text = next((kind for piece, kind in self._texts.items() if piece in text), None)
        by_code = by_text or next((self._codes[word] for word in words if word in self._codes), None)
        if by_code is not None and (by_code in _FINAL or status < 300):
            return by_code
        return _BY_STATUS.get(status) or _by_hundreds(status)


def _words(found: ErrorBody) -> list[str]:
    """What the error calls itself, the most telling first."""
    named = [detail.reason for detail in _details(found)] + [found.code, found.type, found.status]
    return [f"{word:g}" if isinstance(word, float) else str(word).lower() for word in named if word is not None]


def _details(found: ErrorBody) -> list[Detail]:
    try:
        return _decode_details(found.details) if found.details else []
    except msgspec.DecodeError:
        return []


def _retry_delay(found: ErrorBody) -> float | None:
    """`google.rpc.RetryInfo`: seconds as text, such as "37s" or "0.5s"."""
    told = next((detail.retry_delay for detail in _details(found) if detail.retry_delay), "")
    return float(told[:-1]) if _delay(told) else None


def _by_hundreds(status: int) -> type[ProviderError]:
    return BadRequest if 300 <= status < 500 else Overloaded


def _reads_as_overflow(message: str | None, status: int) -> bool:
    if not message or status not in (200, 400, 413, 422):
        return False
    text = message.lower()
    return any(words in text for words in _OVERFLOW_TEXTS)


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


def _no_error_object(status: int, content_type: str, body: bytes, request_id: str | None, mask: Mask) -> ProviderError:
    start = mask(body[: 4 * _SHOWN].decode("utf-8", "replace"))[:_SHOWN].strip() or "(empty)"
    what = f"HTTP {status} with {content_type or 'no content type'}: {start}"
    if status >= 300:
        kind = _BY_STATUS.get(status) or _by_hundreds(status)
        hint = "; redirects are not followed: set base_url to the final address" if status < 400 else ""
        return kind(f"{what} ({_REMEDY[kind]}{hint})", status=status, request_id=request_id)
    return Unreachable(
        f"{what} (no event stream: check base_url, and that no proxy or sign-in page answers in between)",
        status=status,
        code="not_a_stream",
        retryable=False,
        request_id=request_id,
    )
