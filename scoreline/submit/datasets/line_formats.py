"""Formats made of lines: JSONL and CSV."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from pydantic_core import from_json

from scoreline.submit.datasets.errors import DatasetError, RowError, Unfit
from scoreline.submit.datasets.record import (
    MAX_DEPTH,
    MAX_ROW_BYTES,
    DatasetRecord,
    as_fields,
    refuse_too_deep,
    refuse_too_long,
    too_long,
)


def jsonl_records(stream: BinaryIO, path: Path) -> Iterator[DatasetRecord]:
    """Read one JSON object a line; empty lines are passed over."""
    for number, line in _lines(stream, path):
        if line.isspace():
            continue
        try:
            yield DatasetRecord(number, as_fields(_parsed(line)))
        except Unfit as error:
            raise RowError(path, number, str(error)) from None


def _parsed(line: bytes) -> object:
    _decoded(line)
    try:
        value: object = from_json(line.rstrip(b"\r\n"), allow_inf_nan=False)
    except ValueError as error:
        # Its own line number is always 1, because each line is parsed separately.
        raise Unfit(f"broken JSON: {str(error).replace(' at line 1 column ', ' at column ')}") from None
    if line.count(b"[") + line.count(b"{") > MAX_DEPTH:
        refuse_too_deep(value)
    return value


def csv_records(stream: BinaryIO, path: Path) -> Iterator[DatasetRecord]:
    """Read a table whose first line names the columns; every value is a text."""
    csv.field_size_limit(MAX_ROW_BYTES)
    texts = _Texts(stream, path)
    table = csv.reader(texts, strict=True)
    names, first = None, 1
    while (values := _next_row(table, path, first)) is not None:
        texts.size = 0
        line, first = first, table.line_num + 1
        if not values:
            continue
        if names is None:
            names = _named(values, path, line)
            continue
        if len(values) != len(names):
            raise RowError(
                path, line, f"the row has {len(values)} values, the first line names {len(names)}"
            )
        yield DatasetRecord(line, dict(zip(names, values, strict=True)))


def _next_row(table: "csv._reader", path: Path, line: int) -> list[str] | None:  # type: ignore[name-defined]  # as typeshed calls it
    try:
        return next(table, None)
    except Unfit as error:
        raise RowError(path, line, str(error)) from None
    except csv.Error as error:
        raise RowError(path, line, f"broken CSV: {error}") from None


def _named(values: list[str], path: Path, line: int) -> list[str]:
    names = [value.strip() or f"column_{number}" for number, value in enumerate(values, 1)]
    known: set[str] = set()
    for name in names:
        if name in known:
            raise RowError(path, line, f"two columns are named {name[:200]!r}")
        known.add(name)
    return names


class _Texts:
    """The lines of a table as text, and how many bytes of the current row were read."""

    def __init__(self, stream: BinaryIO, path: Path) -> None:
        self._lines, self._path = _lines(stream, path), path
        self.size = 0

    def __iter__(self) -> Iterator[str]:
        for number, line in self._lines:
            self.size += len(line)
            refuse_too_long(self.size)  # quoted fields go on over lines: a row has no other end
            try:
                yield _decoded(line)
            except Unfit as error:
                raise RowError(self._path, number, str(error)) from None


def _decoded(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        wrong = line[error.start]
        raise Unfit(f"not UTF-8: byte 0x{wrong:02x} at {error.start + 1}; save the file as UTF-8") from None


def _lines(stream: BinaryIO, path: Path) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := stream.readline(MAX_ROW_BYTES + 1):
        number += 1
        if len(line) > MAX_ROW_BYTES:
            raise RowError(path, number, too_long(MAX_ROW_BYTES, "line"))
        yield number, line
    if number == 0:
        raise DatasetError(path, "the file is empty")
