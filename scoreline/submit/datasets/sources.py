"""Where the cases of a batch come from."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from psycopg import AsyncConnection

from eventlog import payloads as p
from projections.datasets.repository import UnknownDataset, stored_cases
from scoreline.command_error import CommandError
from scoreline.submit.datasets.cases import DatasetRow
from scoreline.submit.datasets.columns import Columns
from scoreline.submit.datasets.file_formats import stem_of, unit_of
from scoreline.submit.datasets.rows import file_rows


@dataclass(frozen=True, slots=True)
class FileSource:
    """A file, and which of its columns is what."""

    path: Path
    columns: Columns = field(default_factory=Columns)

    @property
    def name(self) -> str:
        """How people would call it."""
        return stem_of(self.path)


@dataclass(frozen=True, slots=True)
class ImportedSource:
    """A dataset that was imported under a name."""

    project: str
    name: str


@dataclass(frozen=True, slots=True)
class SyntheticSource:
    """Cases that are made up: small sums."""

    count: int
    name: str = "synthetic"


Source = FileSource | ImportedSource | SyntheticSource


async def source_rows(source: Source, *, postgres_url: str | None) -> AsyncGenerator[DatasetRow, None]:
    """Read the rows of a source, of which only an imported one needs the database."""
    match source:
        case FileSource(path=path, columns=columns):
            for row in file_rows(path, columns):
                yield row
        case SyntheticSource(count=count):
            for row in synthetic_rows(count):
                yield row
        case ImportedSource():
            async for row in _imported_rows(source, postgres_url):
                yield row


def place_of(source: Source) -> tuple[str, str]:
    """Return the file or dataset of a row, and the unit of its positions."""
    match source:
        case FileSource(path=path):
            return str(path), unit_of(path)
        case ImportedSource(name=name) | SyntheticSource(name=name):
            return f"dataset {name!r}", "row"


def synthetic_rows(count: int) -> Iterator[DatasetRow]:
    """Make up so many sums, the same ones every time."""
    for number in range(1, count + 1):
        one, other = number, number * 7919 % 1_000
        case = p.Case(str(number), f"What is {one} + {other}?", str(one + other))
        yield DatasetRow(case, (), number, number, is_named=False)


async def _imported_rows(source: ImportedSource, postgres_url: str | None) -> AsyncIterator[DatasetRow]:
    if postgres_url is None:
        raise CommandError(f"The dataset {source.name!r} is in the database, and no database is connected.")
    async with await AsyncConnection.connect(postgres_url) as conn:
        try:
            async for stored in stored_cases(conn, project=source.project, name=source.name):
                named = stored.case.id != str(stored.position)
                yield DatasetRow(stored.case, stored.tags, stored.position, stored.position, named)
        except UnknownDataset as error:
            raise CommandError(f"{error} See: scoreline dataset list.{_file_of(source.name)}") from None


def _file_of(name: str) -> str:
    """Add a hint where a name may be a file without a known suffix."""
    return f" To mean the file of that name: ./{name}" if Path(name).is_file() else ""
