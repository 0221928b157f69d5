"""The logger is a sink: what deepstrike writes to it is masked."""

from __future__ import annotations

import logging
from typing import Final

from deepstrike.secrets.binding import bound
from deepstrike.secrets.shapes import masked

LOGGERS: Final = ("deepstrike", "deepstrike.providers")
"""All loggers that deepstrike writes to. A filter of a logger does not act on those below it."""

_formatter: Final = logging.Formatter()


class _Masking(logging.Filter):
    """Rewrites a record that would tell a secret; drops none."""

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            text = record.getMessage()
        except Exception:
            return True  # it does not fit its arguments, which logging itself reports
        if (safe := _safe(text)) != text:
            record.msg, record.args = safe, None
        if record.exc_info:
            told = _formatter.formatException(record.exc_info)
            if (safe := _safe(told)) != told:
                record.exc_info, record.exc_text = None, safe
        return True


_masking: Final = _Masking()


def mask_logs() -> None:
    """From now on. Doing it twice does nothing more."""
    for name in LOGGERS:
        logging.getLogger(name).addFilter(_masking)


def _safe(text: str) -> str:
    return masked(bound().hidden(text))
