"""What a service's error means: status, code and type of the body → one of our exceptions.

Tables, because services differ only in words. Codes are looked at before texts; texts are matched only where a service
gives nothing else (context overflow, see the wire reference 10.4).
"""

from __future__ import annotations

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


class ErrorBody(msgspec.Struct, gc=False):
    """The fields of an error object; any may be missing, `code` and `status` may be numbers or words."""

    message: str | None = None
    type: str | None = None
    code: str | float | None = None
    status_code: int | None = None


class _Flat(ErrorBody, gc=False):
    """An answer with `error` as an object or a text (xAI), or with the fields at the top (old vLLM)."""

    error: ErrorBody | str | None = None
    detail: str | None = None


_decode = msgspec.json.Decoder(_Flat).decode
_decode_list = msgspec.json.Decoder(list[_Flat]).decode


def http_fault(status: int, content_type: str, body: bytes, request_id: str | None, mask: Mask) -> ProviderError:
    """The exception for an HTTP answer that is no stream: an error status, or 200 with something else in it."""
    found = _read(body)
    if found is None or not (found.message or found.code):
        return _no_error_object(status, content_type, body, request_id, mask)
    odd = "" if status >= 300 else f" with {content_type or 'no content type'}, not a stream"
    return _fault(found, status, f"HTTP {status}{odd}", request_id, mask)


def stream_fault(payload: bytes, mask: Mask) -> ProviderError:
    """The exception for an error object inside a stream that began well."""
    found = _read(payload)
    if found is None or not (found.message or found.code):
        found = ErrorBody(message=payload.decode("utf-8", "replace"))
    return _fault(found, 200, "the service reported an error inside its answer", None, mask)


def _fault(found: ErrorBody, status: int, intro: str, request_id: str | None, mask: Mask) -> ProviderError:
    true_status = _status(found, status)
    kind = _kind(found, true_status)
    message = mask(found.message or str(found.code or "no message"))[:_SHOWN]
    remedy = _REMEDY.get(kind, "see the service's message")
    return kind(f"{intro}: {message} ({remedy})", status=true_status, request_id=request_id)


def _kind(found: ErrorBody, status: int) -> type[ProviderError]:
    words = [word.lower() for word in (found.code, found.type) if isinstance(word, str)]
    if any(word in _OVERFLOW_CODES for word in words) or _reads_as_overflow(found.message, status):
        return ContextOverflow
    by_code = next((_BY_CODE[word] for word in words if word in _BY_CODE), None)
    if by_code is not None and (by_code in _FINAL or status < 300):
        return by_code
    return _BY_STATUS.get(status) or _by_hundreds(status)


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
