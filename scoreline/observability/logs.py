"""Structured logs: one line per record with its fields, as JSON or as text for a terminal.

Secrets are redacted in the finished line. Libraries that log requests, with their headers, are logged
from WARNING on, whatever level they or their own variables (ANTHROPIC_LOG, OPENAI_LOG) set.
"""

import json
import logging
import sys
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from types import TracebackType

from opentelemetry.trace import get_current_span

from eventlog.redaction import SHORTEST_ENCODED, redact
from eventlog.secret_sources import unredacted_variables

_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_QUIET = ("psycopg.pool", "storage_worker.broker", "httpx2", "anthropic", "openai")
_LOGS_HEADERS = frozenset(
    {
        *("httpx", "httpx2", "httpcore", "httpcore2", "h11", "h2", "hpack", "urllib3", "requests"),
        *("anthropic", "openai", "aiohttp", "websockets", "grpc", "opentelemetry", "redis", "psycopg"),
    }
)
"""Libraries whose DEBUG and INFO lines may hold headers, addresses with passwords, or bodies."""


def configure(level: str) -> None:
    """Send our logs to stderr; libraries speak up only when something is wrong."""
    handler = logging.StreamHandler()
    handler.addFilter(holds_no_headers)
    handler.setFormatter(TextFormatter() if sys.stderr.isatty() else JsonFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.ERROR)


def holds_no_headers(record: logging.LogRecord) -> bool:
    """Let a record pass unless a library may have put headers into it."""
    return record.levelno >= logging.WARNING or record.name.partition(".")[0] not in _LOGS_HEADERS


def redact_uncaught() -> None:
    """Redact what is printed of exceptions that nothing catches, and of logs before `configure`."""
    sys.excepthook = print_redacted
    if logging.lastResort:
        logging.lastResort.setFormatter(TextFormatter())
        logging.lastResort.addFilter(holds_no_headers)


def print_redacted(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
    """Print an exception as Python does, without secrets."""
    sys.stderr.write(redact("".join(traceback.format_exception(kind, error, where))))


def warn_of_short_secrets(environ: Mapping[str, str]) -> None:
    """Log which variables are named like secrets and are redacted only as whole words, or not at all."""
    if names := unredacted_variables(environ):
        message = (
            f"secrets below {SHORTEST_ENCODED} characters are not redacted in every form, "
            "plain words and paths not at all: lengthen those that are secrets"
        )
        logging.getLogger(__name__).warning(message, extra={"variables": names})


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """Return what a log call passed as `extra`, and the span it was made in, if that is traced."""
    fields = {name: value for name, value in vars(record).items() if name not in _PLAIN}
    return fields | _trace_fields()


def _trace_fields() -> dict[str, object]:
    here = get_current_span().get_span_context()
    if not here.is_valid:
        return {}
    return {"trace_id": f"{here.trace_id:032x}", "span_id": f"{here.span_id:016x}"}


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Render a record."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **fields_of(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return redact(json.dumps(line, default=str))


class TextFormatter(logging.Formatter):
    """One line for people."""

    def format(self, record: logging.LogRecord) -> str:
        """Render a record."""
        time = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        fields = "".join(f" {name}={value}" for name, value in fields_of(record).items())
        line = f"{time} {record.levelname.lower():7} {record.getMessage()}{fields}"
        return redact(f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line)
