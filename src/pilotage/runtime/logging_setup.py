"""Logs: stdlib, one line per record, as text for people or JSON for machines; to standard error.

Secrets are kept out where they are known (credentials never `repr` a token); as a second wall, whatever
looks like an Authorization value is blotted out here.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import UTC, datetime
from enum import StrEnum
from typing import TextIO

_SECRET = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}")
_QUIET = ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio", "aiohttp")


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


class _Formatter(logging.Formatter):
    """`I0131 17:02:03.123 scheduler] text`, the shape that Kubernetes' components write."""

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, UTC)
        place = record.name.removeprefix("pilotage.")
        head = f"{record.levelname[0]}{when:%m%d %H:%M:%S.%f}"[:-3]
        return f"{head} {place}] {_text(self, record)}"


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": _text(self, record),
        }
        return json.dumps(line, ensure_ascii=False)


def set_up_logging(
    log_format: LogFormat = LogFormat.TEXT, *, level: int = logging.INFO, stream: TextIO | None = None
) -> None:
    """Replaces the root logger's handlers. Libraries speak from warnings on."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_JsonFormatter() if log_format is LogFormat.JSON else _Formatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("pilotage").setLevel(level)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


def _text(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    text = record.getMessage()
    if record.exc_info:
        text += "\n" + formatter.formatException(record.exc_info)
    return _SECRET.sub(r"\1 (hidden)", text)
