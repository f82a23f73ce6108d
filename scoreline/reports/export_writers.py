"""Exports in text: JSON lines, one JSON array, or a table that no spreadsheet obeys."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from datetime import datetime
from typing import IO, Any

from pydantic_core import to_json

from scoreline.reports.export_record import Record, as_text

COLUMNS = tuple(each.name for each in fields(Record))
FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What makes a spreadsheet take a cell for a formula; the wide ones do so, too."""


Write = Callable[[Record], None]
"""What adds a record to an export; lent for as long as the export lasts."""


@contextmanager
def json_lines(file: IO[bytes]) -> Iterator[Write]:
    """Write one JSON object a line."""

    def write(record: Record) -> None:
        file.write(to_json(dict(_values(record))) + b"\n")

    yield write


@contextmanager
def json_array(file: IO[bytes]) -> Iterator[Write]:
    """Write one JSON document: an array of objects."""
    before = b"[\n"

    def write(record: Record) -> None:
        nonlocal before
        file.write(before + to_json(dict(_values(record))))
        before = b",\n"

    yield write
    # Not after an error: half a document must not look whole.
    file.write(b"[]\n" if before == b"[\n" else b"\n]\n")


@contextmanager
def csv_table(file: IO[bytes]) -> Iterator[Write]:
    """Write a table with a header; text that a spreadsheet would run is made text by an apostrophe."""
    line = io.StringIO(newline="")
    rows = csv.writer(line)

    def put(cells: Iterable[object]) -> None:
        rows.writerow(cells)
        file.write(line.getvalue().encode())
        line.seek(0)
        line.truncate()

    put(COLUMNS)
    yield lambda record: put(_cell(name, value) for name, value in _values(record))


def safe_cell(text: str) -> str:
    """Return a text that a spreadsheet takes for text."""
    if text.startswith(("\t", "\r")) or text.lstrip().startswith(FORMULA):
        return f"'{text}"
    return text


def _values(record: Record) -> Iterator[tuple[str, Any]]:
    for name in COLUMNS:
        value = getattr(record, name)
        match name:
            case "scores":
                yield name, [said._asdict() for said in value]
            case "error":
                yield name, value._asdict() if value else None
            case "ended_at":
                yield name, value.isoformat() if isinstance(value, datetime) else None
            case _:
                yield name, value


def _cell(name: str, value: Any) -> Any:  # noqa: ANN401 - any cell there is
    if name == "error" and value:
        value = f"{value['kind']}: {value['message']}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)) and name not in {"input", "expected"}:
        return value
    text = as_text(value)
    return "" if text is None else safe_cell(text)
