"""How a server logs: lines for people, or one JSON object per line for programs."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from omnigraph_core.server import settings

if TYPE_CHECKING:
    from omnigraph_core.server.options import LogFormat

_KNOWN: Final = frozenset(
    {*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName", "color_message"}
)
"""What every record has; the rest are facts somebody gave it."""


def configure_logging(form: LogFormat) -> None:
    """Log to standard error, in one form for everybody in the process."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.LOG_LEVEL.read().upper())
    # Every request is logged once, by us; what libraries do for one is their own business.
    for name in ("uvicorn.access", "httpx2", "botocore", "boto3", "urllib3"):
        logging.getLogger(name).setLevel(logging.WARNING)


def facts_of(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in record.__dict__.items() if name not in _KNOWN}


class JsonLines(logging.Formatter):
    """`time`, `level`, `logger`, `message` and the facts of a record."""

    def format(self, record: logging.LogRecord) -> str:
        document: dict[str, object] = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **facts_of(record),
        }
        if record.exc_info:
            document["trace"] = self.formatException(record.exc_info)
        return json.dumps(document, default=str)


class TextLines(logging.Formatter):
    """The same as a line; a line break in a fact cannot begin another one."""

    def format(self, record: logging.LogRecord) -> str:
        facts = " ".join(f"{name}={_word(value)}" for name, value in facts_of(record).items())
        message = record.getMessage().replace("\r", r"\r").replace("\n", r"\n")
        head = f"{_moment(record)} {record.levelname.lower()} {record.name}: {message}"
        line = f"{head} {facts}" if facts else head
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def _word(value: object) -> str:
    text = str(value)
    return text if text.isascii() and text.isprintable() and " " not in text else json.dumps(text)
