"""`scoreline batch export`: streams all results of a batch to a file, in the order of its dataset."""

import asyncio
import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import IO, NamedTuple

from rich.console import Console

from projections.database.connection import Connection, one_snapshot
from projections.queries.batches import BatchSnapshot, read_snapshot
from projections.queries.export import ending_counts, export_rows
from providers.extras import install_command
from scoreline.command_error import CommandError
from scoreline.formatting import counted, printable
from scoreline.reports.audit.batches import progress_bar
from scoreline.reports.export_file import STDOUT, whole_file
from scoreline.reports.export_junit import junit
from scoreline.reports.export_record import make_record
from scoreline.reports.export_writers import Write, csv_table, json_array, json_lines
from scoreline.reports.labels import variant_labels
from scoreline.reports.pass_rate import is_scored
from scoreline.servers.addresses import Servers
from scoreline.servers.connection import connected

ADVANCE_EVERY = 500
PASSED = ("completed", "passed")
"""Status and verdict of an evaluation that passed."""


class Format(StrEnum):
    """The format of an export."""

    JSONL = "jsonl"
    JSON = "json"
    CSV = "csv"
    JUNIT = "junit"
    PARQUET = "parquet"


BY_SUFFIX = {
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".json": Format.JSON,
    ".csv": Format.CSV,
    ".xml": Format.JUNIT,
    ".parquet": Format.PARQUET,
}


class Output(NamedTuple):
    """A file that a run writes at its end."""

    path: Path
    format: Format


def read_outputs(paths: Sequence[Path]) -> tuple[Output, ...]:
    """Check the files that a run is to write, before it starts; raises `CommandError`."""
    return tuple(_output(path) for path in paths)


def _output(path: Path) -> Output:
    format_ = format_of(path)
    if format_ is None or path == STDOUT:
        known = ", ".join(sorted(BY_SUFFIX))
        raise CommandError(f"-o {path}: the name of the file must end with one of {known}")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise CommandError(f"-o {path}: give the name of a file in a directory that exists")
    if not os.access(path.absolute().parent, os.W_OK):
        raise CommandError(f"-o {path}: the directory {path.absolute().parent} is not writable")
    check_parquet(ExportRequest("", path, format_))
    return Output(path.absolute(), format_)


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """The batch to export, the file, its format and the options."""

    batch_id: str
    path: Path
    format: Format
    force: bool = False
    as_json: bool = False
    failed: bool = False
    """Export only evaluations that did not pass."""


def format_of(path: Path) -> Format | None:
    """Return the format by the suffix of a file; JSON lines for standard output."""
    return Format.JSONL if path == STDOUT else BY_SUFFIX.get(path.suffix.lower())


def run_export(servers: Servers, request: ExportRequest) -> int:
    """Write the file; returns the exit code."""
    started = time.perf_counter()
    try:
        rows = asyncio.run(export_to(servers.postgres_url, request))
    except BrokenPipeError:
        # The reader closed the pipe; without this, Python reports the same error again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    _report(request, rows, time.perf_counter() - started)
    return 0


async def export_to(postgres_url: str, request: ExportRequest) -> int:
    """Write an export; returns the number of evaluations in it."""
    async with connected(postgres_url) as conn, one_snapshot(conn):
        snapshot = await read_snapshot(conn, request.batch_id)
        counts = await ending_counts(conn, request.batch_id)
        if request.failed:
            counts = {ending: count for ending, count in counts.items() if ending != PASSED}
        with (
            whole_file(request.path, force=request.force) as file,
            writer(request.format, file, snapshot, counts) as write,
        ):
            return await _write(conn, snapshot, write, total=sum(counts.values()), failed=request.failed)


def writer(
    format_: Format, file: IO[bytes], snapshot: BatchSnapshot, counts: dict[tuple[str, str], int]
) -> AbstractContextManager[Write]:
    """Return the writer of a format."""
    match format_:
        case Format.JSONL:
            return json_lines(file)
        case Format.JSON:
            return json_array(file)
        case Format.CSV:
            return csv_table(file)
        case Format.JUNIT:
            name = snapshot.name or snapshot.batch_id
            return junit(file, name=name, endings=counts, is_scored=is_scored(snapshot.spec))
        case Format.PARQUET:
            from scoreline.reports.export_parquet import parquet  # noqa: PLC0415 - an extra

            return parquet(file)


async def _write(
    conn: Connection, snapshot: BatchSnapshot, write: Write, *, total: int, failed: bool
) -> int:
    labels, written = variant_labels(snapshot.spec), 0
    scored = is_scored(snapshot.spec)
    with progress_bar(f"exporting {printable(snapshot.batch_id)}", total) as advance:
        async for row in export_rows(conn, snapshot.batch_id):
            if failed and (row.status, row.verdict) == PASSED:
                continue
            write(make_record(row, labels, is_scored=scored))
            written += 1
            if written % ADVANCE_EVERY == 0:
                advance(ADVANCE_EVERY)
    return written


def check_parquet(request: ExportRequest) -> None:
    """Raise `CommandError` if a Parquet file can't be written here."""
    if request.format is not Format.PARQUET:
        return
    if request.path == STDOUT:
        raise CommandError("Parquet needs a file. Give its name: -o results.parquet")
    if find_spec("pyarrow") is None:
        raise CommandError(f"Parquet needs pyarrow. To install it: {install_command('parquet')}")


def _report(request: ExportRequest, rows: int, seconds: float) -> None:
    if request.as_json:
        size = request.path.stat().st_size if request.path.is_file() else None
        summary = {
            "batch_id": request.batch_id,
            "file": str(request.path),
            "format": request.format.value,
            "rows": rows,
            "bytes": size,
            "seconds": round(seconds, 3),
        }
        print(json.dumps(summary))  # noqa: T201 - machines read stdout
        return
    where = "standard output" if request.path == STDOUT else printable(str(request.path))
    message = f"{counted(rows, 'evaluation')} written to {where} in {seconds:.1f} s"
    Console(stderr=True, highlight=False, markup=False, soft_wrap=True).print(message)
