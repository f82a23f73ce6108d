"""Exports as Parquet: typed columns, in row groups that fit in memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above

from scoreline.reports.export_record import Record, as_text
from scoreline.reports.export_writers import Write

GROUP_ROWS = 20_000
GROUP_BYTES = 32 * 1024 * 1024

_JUDGEMENT = pa.struct(
    [("evaluator", pa.string()), ("score", pa.float64()), ("passed", pa.bool_()), ("reason", pa.string())]
)
SCHEMA = pa.schema(
    [
        ("evaluation_id", pa.string()),
        ("case_id", pa.string()),
        ("variant", pa.int32()),
        ("target", pa.string()),
        ("prompt", pa.string()),
        ("repetition", pa.int32()),
        ("status", pa.string()),
        ("verdict", pa.string()),
        ("passed", pa.bool_()),
        ("score", pa.float64()),
        ("scores", pa.list_(_JUDGEMENT)),
        ("reason", pa.string()),
        ("output", pa.string()),
        ("input", pa.string()),
        ("expected", pa.string()),
        ("rendered_prompt", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("metadata", pa.string()),
        ("error", pa.struct([("kind", pa.string()), ("message", pa.string())])),
        ("attempts", pa.int32()),
        ("tokens", pa.int64()),
        ("input_tokens", pa.int64()),
        ("output_tokens", pa.int64()),
        ("cached", pa.bool_()),
        ("cost_usd", pa.float64()),
        ("latency_ms", pa.float64()),
        ("exit_code", pa.int64()),
        ("bridged", pa.bool_()),
        ("ended_at", pa.timestamp("us", tz="UTC")),
    ]
)
"""Values of a case that are not text are written as JSON text."""


@contextmanager
def parquet(file: IO[bytes]) -> Iterator[Write]:
    """Yield the writer of a Parquet file."""
    with pq.ParquetWriter(file, SCHEMA, compression="zstd") as writer:
        group = RowGroup(writer)
        yield group.add
        group.flush()


@dataclass(slots=True)
class RowGroup:
    """A buffer of rows, flushed as one row group."""

    writer: pq.ParquetWriter
    rows: list[dict[str, Any]] = field(default_factory=list)
    size: int = 0

    def add(self, record: Record) -> None:
        """Add a row."""
        row = _row(record)
        self.rows.append(row)
        self.size += sum(
            len(row[name] or "")
            for name in ("reason", "output", "input", "expected", "rendered_prompt", "metadata")
        )
        if len(self.rows) >= GROUP_ROWS or self.size >= GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the buffered rows."""
        if self.rows:
            self.writer.write_table(pa.Table.from_pylist(self.rows, schema=SCHEMA))
        self.rows, self.size = [], 0


def _row(record: Record) -> dict[str, Any]:
    row: dict[str, Any] = {name: getattr(record, name) for name in SCHEMA.names}
    row["scores"] = [score._asdict() for score in record.scores]
    row["error"] = record.error._asdict() if record.error else None
    row["input"], row["expected"] = as_text(record.input), as_text(record.expected)
    row["metadata"] = as_text(record.metadata)
    return row
