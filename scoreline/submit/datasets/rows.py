"""The rows of a file, one after the other, however many there are."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import JsonValue
from pydantic_core import from_json

from scoreline.submit.datasets.cases import DatasetRow, row_of
from scoreline.submit.datasets.columns import EXPECTED_NAMES, Columns
from scoreline.submit.datasets.errors import DatasetError, RowError, Unfit
from scoreline.submit.datasets.file_formats import DatasetFormat, OnRead, format_of, opened, unit_of
from scoreline.submit.datasets.id_index import IdIndex
from scoreline.submit.datasets.json_document import json_records
from scoreline.submit.datasets.line_formats import csv_records, jsonl_records
from scoreline.submit.datasets.record import DatasetRecord, Fields, refuse_too_deep
from scoreline.submit.datasets.yaml_document import yaml_records


def records(path: Path, *, at: str | None = None, on_read: OnRead | None = None) -> Iterator[DatasetRecord]:
    """Read the records of a file as they are; raises `DatasetError` and `RowError`."""
    kind = format_of(path)
    if at is not None and kind in (DatasetFormat.JSONL, DatasetFormat.CSV):
        raise DatasetError(
            path, f"`records` ({at!r}) is for JSON and YAML documents: here every line is a row"
        )
    with opened(path, on_read=on_read) as stream:
        match kind:
            case DatasetFormat.JSONL:
                yield from jsonl_records(stream, path)
            case DatasetFormat.CSV:
                yield from csv_records(stream, path)
            case DatasetFormat.JSON:
                yield from json_records(stream, path, at=at)
            case DatasetFormat.YAML:
                yield from yaml_records(stream, path, at=at)


def file_rows(
    path: Path, columns: Columns | None = None, *, on_read: OnRead | None = None
) -> Iterator[DatasetRow]:
    """Read the cases of a file; raises `DatasetError`, and `RowError` for the first row that is none."""
    columns, unit, position = columns or Columns(), unit_of(path), 0
    is_table = format_of(path) is DatasetFormat.CSV
    with IdIndex() as seen:
        for position, record in enumerate(records(path, at=columns.records, on_read=on_read), 1):
            try:
                fields = _with_meanings(record.fields, columns) if is_table else record.fields
                row = row_of(fields, position, line=record.line, columns=columns)
            except Unfit as error:
                raise RowError(path, record.line, str(error), unit=unit) from None
            first = seen.add(row.case.id, record.line)
            if first is not None:
                reason = f"the id {row.case.id!r} was there before, in {unit} {first}"
                raise RowError(path, record.line, reason, unit=unit)
            yield row
    if position == 0:
        raise DatasetError(path, "there is not one row in it")


def _with_meanings(fields: Fields, columns: Columns) -> Fields:
    """Read values that a table has only as text: an empty answer is None, two columns are JSON."""
    meant = dict(fields)
    for name in (columns.expected,) if columns.expected else EXPECTED_NAMES:
        if meant.get(name) == "":
            meant[name] = None
    for name, opening in (("tags", "["), ("metadata", "{")):
        text = meant.get(name)
        if isinstance(text, str) and text.startswith(opening):
            meant[name] = _read_json(name, text)
    return meant


def _read_json(name: str, text: str) -> JsonValue:
    try:
        value: JsonValue = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise Unfit(f"the column {name!r} begins like JSON and is none: {error}") from None
    refuse_too_deep(value)
    return value
