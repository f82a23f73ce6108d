"""Recorded answers and the cases they belong to.

Where the recorded file has ids, its rows join their cases by id, and the n-th row of one id is the answer
of repetition n. The file may have any order, so its answers are first put into a temporary table on disk.
Where it has none, rows join by position, and both files are read side by side. Neither is held in memory.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from pydantic import JsonValue

from domain.template import UnknownField, as_text, look_up
from eventlog.payloads import MAX_TEXT
from scoreline.submit.datasets.cases import DatasetRow, safe
from scoreline.submit.datasets.columns import EXPECTED_NAMES, OUTPUT_NAMES, mapped_value, no_column
from scoreline.submit.datasets.errors import RowError, Unfit
from scoreline.submit.datasets.file_formats import unit_of
from scoreline.submit.datasets.record import DatasetRecord, Fields
from scoreline.submit.datasets.rows import records
from scoreline.submit.datasets.sources import FileSource, Source
from scoreline.submit.spec.plan import Recorded


class Answers(Protocol):
    """The answers of one recorded target."""

    most: int
    """How many answers the case with the most of them has."""

    def output(self, row: DatasetRow, repetition: int) -> str:
        """Find the answer to a case; raises `Unfit` where there is none. Cases are asked for in order."""
        ...


@contextmanager
def recorded_answers(recorded: Recorded, source: Source) -> Iterator[Answers]:
    """Open a file of recorded answers for as long as its cases are submitted."""
    outputs = _Outputs(recorded, source)
    first = next(outputs.records(), None)
    id_column = None if outputs.is_dataset or first is None else _id_column(recorded, source, first.fields)
    with ExitStack() as stack:
        if id_column is None:
            yield _ByPosition(outputs, recorded.path)
            return
        folder = stack.enter_context(TemporaryDirectory(prefix="scoreline-"))
        table = stack.enter_context(closing(sqlite3.connect(Path(folder, "answers.db"))))
        yield _ById(table, outputs, id_column)


def _id_column(recorded: Recorded, source: Source, fields: Fields) -> str | None:
    """Choose the column of the case ids: the target's, the dataset's, or `id`."""
    if recorded.columns.id is not None:
        return recorded.columns.id
    of_dataset = source.columns.id if isinstance(source, FileSource) else None
    for name in (of_dataset, "id"):
        if name is not None and _has(fields, name):
            return name
    return None


def _has(fields: Fields, name: str) -> bool:
    try:
        look_up(fields, name)
    except UnknownField:
        return False
    return True


class _Outputs:
    """Reads answers out of the records of a file."""

    def __init__(self, recorded: Recorded, source: Source) -> None:
        self.path, self._column, self._at = recorded.path, recorded.output, recorded.columns.records
        same = isinstance(source, FileSource) and source.path.resolve() == recorded.path.resolve()
        self._dataset = source.columns if same and isinstance(source, FileSource) else None
        self.is_dataset = self._dataset is not None and self._dataset.records == self._at

    def records(self) -> Iterator[DatasetRecord]:
        return records(self.path, at=self._at)

    def bad(self, record: DatasetRecord, reason: str) -> RowError:
        return RowError(self.path, record.line, reason, unit=unit_of(self.path))

    def of(self, record: DatasetRecord) -> str:
        """Read the answer of a record as text; raises `RowError`."""
        try:
            value = self._value(record.fields)
        except Unfit as error:
            raise self.bad(record, str(error)) from None
        if value is None:
            raise self.bad(record, "the recorded answer is null")
        output: str = safe(as_text(value))
        if len(output) > MAX_TEXT:
            raise self.bad(record, f"the answer has {len(output)} characters, {MAX_TEXT} are allowed")
        return output

    def _value(self, fields: Fields) -> JsonValue:
        if self._column is not None:
            return mapped_value(fields, self._column)
        for name in OUTPUT_NAMES:
            if name in fields and name != self._expected_column(fields):
                return fields[name]
        raise Unfit(f"{no_column('output', fields)} Set the column of the answers with `output`.")

    def _expected_column(self, fields: Fields) -> str | None:
        """In the dataset's own file, what is expected is no answer, though it may have such a name."""
        if self._dataset is None or self._dataset.expected is not None:
            return self._dataset.expected if self._dataset else None
        return next((name for name in EXPECTED_NAMES if name in fields), None)


class _ByPosition:
    """Answers in the order of the cases."""

    most = 1

    def __init__(self, outputs: _Outputs, path: Path) -> None:
        self._outputs, self._path = outputs, path
        self._start()

    def _start(self) -> None:
        self._records = enumerate(self._outputs.records(), 1)
        self._position, self._output = 0, ""

    def output(self, row: DatasetRow, repetition: int) -> str:
        if row.is_named and not self._outputs.is_dataset:
            raise Unfit(
                f"the case {row.case.id!r} has an id, the answers in {self._path} have none: "
                "set the column of the case ids with `id`"
            )
        if repetition > 1:
            raise Unfit(f"{self._path} has one answer for each case, repetition {repetition} has none")
        if row.position < self._position:
            self._start()  # the cases are read once more
        while self._position < row.position:
            found = next(self._records, None)
            if found is None:
                raise Unfit(f"there is no recorded answer for the case {row.case.id!r} in {self._path}")
            self._position, record = found
            if self._position == row.position:
                self._output = self._outputs.of(record)
        return self._output


class _ById:
    """Answers by id and number, in a table on disk."""

    def __init__(self, table: sqlite3.Connection, outputs: _Outputs, id_column: str) -> None:
        self._table, self._outputs = table, outputs
        table.execute("PRAGMA journal_mode = OFF")
        table.execute("PRAGMA synchronous = OFF")
        table.execute("CREATE TABLE answers (id TEXT, line INTEGER, output TEXT)")
        table.executemany("INSERT INTO answers VALUES (?, ?, ?)", self._rows(id_column))
        table.execute("CREATE INDEX by_id ON answers (id, line)")
        counted = "SELECT coalesce(max(n), 1) FROM (SELECT count(*) AS n FROM answers GROUP BY id)"
        self.most: int = table.execute(counted).fetchone()[0]

    def _rows(self, id_column: str) -> Iterator[tuple[str, int, str]]:
        for record in self._outputs.records():
            try:
                identifier = as_text(mapped_value(record.fields, id_column))
            except Unfit as error:
                raise self._outputs.bad(record, str(error)) from None
            yield safe(identifier), record.line, self._outputs.of(record)

    def output(self, row: DatasetRow, repetition: int) -> str:
        found = self._table.execute(
            "SELECT output FROM answers WHERE id = ? ORDER BY line LIMIT 1 OFFSET ?",
            [row.case.id, repetition - 1],
        ).fetchone()
        if found is None:
            which = f" for repetition {repetition}" if repetition > 1 else ""
            raise Unfit(
                f"there is no recorded answer for the case {row.case.id!r}{which} in {self._outputs.path}"
            )
        output: str = found[0]
        return output
