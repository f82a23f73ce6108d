"""Exports as text: JSON lines, one JSON array, or CSV that is safe from formula injection."""

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
"""First characters by which spreadsheets recognise a formula, full-width forms included."""


Write = Callable[[Record], None]
"""Adds a record to an export; valid within the `with` block of its writer."""


@contextmanager
def json_lines(file: IO[bytes]) -> Iterator[Write]:
    """Yield the writer of JSON lines: one object per line."""

    def write(record: Record) -> None:
        file.write(to_json(dict(_values(record))) + b"\n")

    yield write


@contextmanager
def json_array(file: IO[bytes]) -> Iterator[Write]:
    """Yield the writer of one JSON array of objects."""
    before = b"[\n"

    def write(record: Record) -> None:
        nonlocal before
        file.write(before + to_json(dict(_values(record))))
        before = b",\n"

    yield write
    # Not after an error: a truncated document must not parse.
    file.write(b"[]\n" if before == b"[\n" else b"\n]\n")


@contextmanager
def csv_table(file: IO[bytes]) -> Iterator[Write]:
    """Yield the writer of a CSV table with a header; an apostrophe precedes text that is a formula."""
    line = io.StringIO(newline="")
    rows = csv.writer(line)

    def write_row(cells: Iterable[object]) -> None:
        rows.writerow(cells)
        file.write(line.getvalue().encode())
        line.seek(0)
        line.truncate()

    write_row(COLUMNS)
    yield lambda record: write_row(_cell(name, value) for name, value in _values(record))


def safe_cell(text: str) -> str:
    """Return the text, prefixed with an apostrophe where a spreadsheet would run it."""
    if text.startswith(("\t", "\r")) or text.lstrip().startswith(FORMULA):
        return f"'{text}"
    return text


def _values(record: Record) -> Iterator[tuple[str, Any]]:
    for name in COLUMNS:
        value = getattr(record, name)
        match name:
            case "scores":
                yield name, [score._asdict() for score in value]
            case "error":
                yield name, value._asdict() if value else None
            case "ended_at":
                yield name, value.isoformat() if isinstance(value, datetime) else None
            case _:
                yield name, value


def _cell(name: str, value: Any) -> Any:  # noqa: ANN401 - any value of a cell
    if name == "error" and value:
        value = f"{value['kind']}: {value['message']}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)) and name not in {"input", "expected"}:
        return value
    text = as_text(value)
    return "" if text is None else safe_cell(text)
