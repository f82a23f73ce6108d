"""Exports in text: one JSON object a line, or a table that no spreadsheet obeys."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import fields
from datetime import datetime
from typing import IO, Any, Protocol

from scoreline.batches.export_record import Record, as_text

COLUMNS = tuple(each.name for each in fields(Record))
FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What makes a spreadsheet take a cell for a formula; the wide ones do so, too."""


class Writer(Protocol):
    """Writes records into a file, one after the other."""

    def write(self, record: Record) -> None:
        """Add a record."""
        ...

    def close(self) -> None:
        """Write what belongs at the end; the file itself stays open."""
        ...


class JsonLinesWriter:
    """One JSON object a line."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, record: Record) -> None:
        """Add a line."""
        self._file.write(json.dumps(dict(_values(record)), ensure_ascii=False).encode() + b"\n")

    def close(self) -> None:
        """Nothing belongs at the end."""


class CsvWriter:
    """A table with a header; text that a spreadsheet would run is made text by an apostrophe."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._line = io.StringIO(newline="")
        self._rows = csv.writer(self._line)
        self._put(COLUMNS)

    def write(self, record: Record) -> None:
        """Add a row."""
        self._put([_cell(name, value) for name, value in _values(record)])

    def close(self) -> None:
        """Nothing belongs at the end."""

    def _put(self, cells: Sequence[object]) -> None:
        self._rows.writerow(cells)
        self._file.write(self._line.getvalue().encode())
        self._line.seek(0)
        self._line.truncate()


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
