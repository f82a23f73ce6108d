"""Exports as Parquet: typed columns, in groups of rows small enough to hold."""

from typing import IO, Any

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above

from scoreline.batches.export_record import Record, as_text

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
        ("error", pa.struct([("kind", pa.string()), ("message", pa.string())])),
        ("attempts", pa.int32()),
        ("tokens", pa.int64()),
        ("cost_usd", pa.float64()),
        ("latency_ms", pa.float64()),
        ("exit_code", pa.int64()),
        ("bridged", pa.bool_()),
        ("ended_at", pa.timestamp("us", tz="UTC")),
    ]
)
"""What is JSON in a case is JSON text here, unless it is text already."""


class ParquetWriter:
    """Keeps a group of rows, then writes it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._writer = pq.ParquetWriter(file, SCHEMA, compression="zstd")
        self._rows: list[dict[str, Any]] = []
        self._bytes = 0

    def write(self, record: Record) -> None:
        """Add a row."""
        row = _row(record)
        self._rows.append(row)
        self._bytes += sum(len(row[name] or "") for name in ("reason", "output", "input", "expected"))
        if len(self._rows) >= GROUP_ROWS or self._bytes >= GROUP_BYTES:
            self._flush()

    def close(self) -> None:
        """Write the last group and the footer."""
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(pa.Table.from_pylist(self._rows, schema=SCHEMA))
        self._rows, self._bytes = [], 0


def _row(record: Record) -> dict[str, Any]:
    row: dict[str, Any] = {name: getattr(record, name) for name in SCHEMA.names}
    row["scores"] = [said._asdict() for said in record.scores]
    row["error"] = record.error._asdict() if record.error else None
    row["input"], row["expected"] = as_text(record.input), as_text(record.expected)
    return row
