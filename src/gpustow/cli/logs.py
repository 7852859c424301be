"""How log lines look, on stderr: as text for people, or as JSON for machines, one object a line.

What a record carries beside its message (`extra`) becomes keys of the object; the text form leaves it out, because its
messages say what matters. Times are UTC with milliseconds.

Limits: no files, no rotation. A container's stderr is somebody else's to keep.
"""

import json
import logging
import sys
from datetime import UTC, datetime
from enum import StrEnum
from typing import TextIO


class LogFormat(StrEnum):
    """The forms of a log line."""

    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    """The least grave lines that are shown."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


_OWN_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class TextFormatter(logging.Formatter):
    """`2026-01-31T12:00:00.000Z INFO gpustow.plugin.supervisor: reloading`; further lines are indented."""

    def format(self, record: logging.LogRecord) -> str:
        """One record as text."""
        text = f"{_time(record)} {record.levelname} {record.name}: {record.getMessage()}"
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        return text.replace("\n", "\n  ")


class JsonFormatter(logging.Formatter):
    """Keys `time`, `level`, `logger`, `message`, `traceback` if there is one, and whatever the record carries."""

    def format(self, record: logging.LogRecord) -> str:
        """One record as a JSON object on one line."""
        line: dict[str, object] = {name: value for name, value in vars(record).items() if name not in _OWN_ATTRIBUTES}
        line |= {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


def set_up_logs(form: LogFormat, level: LogLevel, stream: TextIO | None = None) -> None:
    """Sends all log lines of this process to `stream` (stderr where None), in place of whatever was set up before."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if form is LogFormat.JSON else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
