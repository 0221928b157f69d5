"""The exception tree.

    DeepStrikeError
    ├── ConfigError (also a ValueError)      wrong configuration, raised when the object is built
    ├── RunFailed                            a run ended with status "error" (.result has the rest)
    ├── ToolError                            raised by a tool on purpose, with a hint for the model
    ├── QueueFull                            so many signals wait that low and normal ones are refused
    ├── SessionError
    │   ├── CorruptLog                       damage in a session log
    │   ├── StaleWriter                      somebody else has written to the session
    │   ├── SessionBusy                      a run is live on this session
    │   └── UnknownSession
    └── ProviderError
        ├── Unauthorized   ├── BadRequest    ├── ContextOverflow  ├── RateLimited
        ├── QuotaExhausted ├── Overloaded    ├── Unreachable      ├── Truncated
        ├── ContentFiltered├── CircuitOpen   └── Stalled

Every message says what happened and what to do about it. Secrets never appear in one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepstrike.stream import RunResult

_hide: Callable[[str], str] | None = None


def hide_messages(hide: Callable[[str], str]) -> None:
    """From now on no message of an error of this package is made but by way of `hide`; `deepstrike.secrets` does so."""
    global _hide
    _hide = hide


class DeepStrikeError(Exception):
    """Base of everything this package raises on purpose.

    `code` is a stable word for programs; `retryable` says whether the same call may succeed later;
    `status` is an HTTP status where there was one; `request_id` is the vendor's id of the request.
    """

    default_code: ClassVar[str] = "error"
    default_retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str | None = None,
        retryable: bool | None = None,
        request_id: str | None = None,
    ) -> None:
        if _hide is not None and isinstance(message, str):
            message = _hide(message)  # many a message names what it was given
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code if code is not None else self.default_code
        self.retryable = retryable if retryable is not None else self.default_retryable
        self.request_id = request_id


class ConfigError(DeepStrikeError, ValueError):
    """Wrong configuration; names the field and the remedy."""

    default_code = "config"


class RunFailed(DeepStrikeError):
    """A run ended with status `error`: `code` and `retryable` are those of what failed.

    `result` holds the partial text, usage and session id.
    """

    default_code = "run_failed"

    def __init__(self, message: str, *, result: RunResult, code: str | None = None, retryable: bool = False) -> None:
        super().__init__(message, code=code, retryable=retryable)
        self.result = result


class ToolError(DeepStrikeError):
    """Raise it in a tool to give the model a chosen error, with an optional hint on what to do.

    Unlike other exceptions its text reaches the model without the type's name. `retryable=True` lets a tool with
    `retries=` be tried again.
    """

    default_code = "tool_error"

    def __init__(self, message: str, *, hint: str | None = None, retryable: bool = False) -> None:
        super().__init__(message, retryable=retryable)
        self.hint = hint


class QueueFull(DeepStrikeError):
    """So many signals wait already that this one is refused. Try again later."""

    default_code = "queue_full"
    default_retryable = True


class SessionError(DeepStrikeError):
    """Something is wrong with a session or its log."""

    default_code = "session"


class CorruptLog(SessionError):
    """The log is damaged; the message names the session, the record and what does not fit."""

    default_code = "corrupt_log"


class StaleWriter(SessionError):
    """The session has moved on since it was read: another writer appended first."""

    default_code = "stale_writer"


class SessionBusy(SessionError):
    """A run is live on this session. Wait for it, interrupt it, or use another session id."""

    default_code = "session_busy"
    default_retryable = True


class UnknownSession(SessionError):
    """No such session in this log."""

    default_code = "unknown_session"


class ProviderError(DeepStrikeError):
    """A model call failed. The subclasses say how."""

    default_code = "provider"


class Unauthorized(ProviderError):
    """The key is missing, wrong or has no right to this model (401, 403)."""

    default_code = "unauthorized"


class BadRequest(ProviderError):
    """The service refused the request as malformed or unsupported (400, 404, 422)."""

    default_code = "bad_request"


class ContextOverflow(ProviderError):
    """The prompt does not fit the model's window."""

    default_code = "context_overflow"


class RateLimited(ProviderError):
    """Too many requests (429); retried by the schedule of `RetryConfig`."""

    default_code = "rate_limited"
    default_retryable = True


class QuotaExhausted(ProviderError):
    """The account has no credit left. Retrying does not help."""

    default_code = "quota_exhausted"


class Overloaded(ProviderError):
    """The service is failing or overloaded (5xx, 529)."""

    default_code = "overloaded"
    default_retryable = True


class Unreachable(ProviderError):
    """No connection, or it broke before an answer began."""

    default_code = "unreachable"
    default_retryable = True


class Truncated(ProviderError):
    """The stream ended without a finish reason: a cut answer, never a finished one."""

    default_code = "truncated"
    default_retryable = True


class Stalled(ProviderError):
    """The stream stayed open but made no progress within the limits of `Timeouts`."""

    default_code = "stalled"
    default_retryable = True


class ContentFiltered(ProviderError):
    """The service withheld the answer by its content filter."""

    default_code = "content_filter"


class CircuitOpen(ProviderError):
    """The circuit breaker of this endpoint is open after repeated failures; no request was sent."""

    default_code = "circuit_open"
    default_retryable = True
