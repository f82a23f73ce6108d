"""Exports as Parquet, in row groups of bounded size."""

import io

import pyarrow.parquet as pq  # type: ignore[import-untyped]  # pyarrow ships no types
import pytest
from hypothesis import given, settings

from scoreline.reports import export_parquet
from scoreline.reports.export_parquet import parquet
from scoreline.reports.export_record import Record
from tests.unit.scoreline.reports.export_rows import record, texts


def written(*records: Record) -> pq.ParquetFile:
    file = io.BytesIO()
    with parquet(file) as write:
        for each in records:
            write(each)
    return pq.ParquetFile(io.BytesIO(file.getvalue()))


@settings(deadline=None, max_examples=30)
@given(texts)
def test_texts_round_trip(text: str) -> None:
    """Values that are no text are JSON text; an error is a struct, and absent where there is none."""
    completed, failed = written(record(text), record(text, status="failed")).read().to_pylist()
    assert (completed["output"], completed["input"], completed["error"]) == (text, text, None)
    assert failed["error"] == {"kind": "permanent", "message": text}
    assert completed["scores"] == [{"evaluator": "exact", "score": 0.0, "passed": False, "reason": text}]


def groups(*records: Record) -> list[int]:
    """Return the number of rows of each group."""
    metadata = written(*records).metadata
    return [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)]


def test_a_group_ends_at_its_number_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last group has the rest; an export of exactly one group has no empty one."""
    monkeypatch.setattr(export_parquet, "GROUP_ROWS", 2)
    assert groups(*[record()] * 5) == [2, 2, 1]
    assert groups(*[record()] * 2) == [2]
    assert groups() == []


def test_a_group_ends_at_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long texts make groups of fewer rows; the count starts again with each group."""
    monkeypatch.setattr(export_parquet, "GROUP_BYTES", 1_000)
    assert groups(record("x" * 1_000), record("4"), record("4")) == [1, 2]
