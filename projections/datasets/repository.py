"""Imported datasets: inserted by COPY in one transaction, read as a stream."""

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from psycopg import AsyncConnection
from pydantic_core import from_json, to_json

from eventlog.payloads import Case
from projections.sql import query

Connection = AsyncConnection[Any]


class DatasetExists(Exception):  # noqa: N818 - names the conflict
    """The project has a dataset of this name."""

    def __init__(self, project: str, name: str) -> None:
        super().__init__(f"The project {project!r} has a dataset {name!r} already.")
        self.project = project
        self.name = name


class UnknownDataset(Exception):  # noqa: N818 - names what is unknown
    """No dataset has this name."""

    def __init__(self, project: str, name: str) -> None:
        super().__init__(f"The project {project!r} has no dataset {name!r}.")
        self.project = project
        self.name = name


@dataclass(frozen=True, slots=True)
class NewDataset:
    """A dataset to import, without its cases."""

    name: str
    project: str
    source: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Dataset:
    """A stored dataset."""

    name: str
    project: str
    source: str
    tags: list[str]
    cases: int
    imported_at: datetime


class StoredCase(NamedTuple):
    """A case of an imported dataset, with its position."""

    position: int
    case: Case
    tags: tuple[str, ...]


async def import_dataset(
    conn: Connection, dataset: NewDataset, cases: Iterable[StoredCase], *, replace: bool
) -> int:
    """Import all cases or none, and count them; raises `DatasetExists`, and errors of the source."""
    key = [dataset.project, dataset.name]
    async with conn.transaction():
        if replace:
            await conn.execute(query("dataset_delete_cases"), key)
            await conn.execute(query("dataset_delete"), key)
        inserted = await conn.execute(query("dataset_insert"), [*key, dataset.source, list(dataset.tags)])
        if inserted.rowcount == 0:
            raise DatasetExists(*key)
        count = await _copy(conn, dataset, cases)
        await conn.execute(query("dataset_count"), [count, *key])
    return count


async def _copy(conn: Connection, dataset: NewDataset, cases: Iterable[StoredCase]) -> int:
    count = 0
    async with conn.cursor() as cursor, cursor.copy(query("dataset_copy_cases")) as copy:
        for position, case, tags in cases:
            await copy.write_row(
                (
                    *(dataset.project, dataset.name, position, case.id),
                    *(_json(case.input), _json(case.expected), list(tags), _json(case.metadata)),
                )
            )
            count += 1
    return count


def _json(value: Any) -> str | None:  # noqa: ANN401 - any JSON value
    return None if value is None else to_json(value).decode()


async def list_datasets(conn: Connection, *, project: str | None) -> list[Dataset]:
    """List datasets, of one project or of all, by name."""
    rows = await (await conn.execute(query("dataset_list"), {"project": project})).fetchall()
    return [Dataset(*row) for row in rows]


async def read_dataset(conn: Connection, *, project: str, name: str) -> Dataset:
    """Read a dataset's own row, or raise `UnknownDataset`."""
    row = await (await conn.execute(query("dataset_row"), [project, name])).fetchone()
    if row is None:
        raise UnknownDataset(project, name)
    return Dataset(*row)


async def stored_cases(
    conn: Connection, *, project: str, name: str, limit: int | None = None
) -> AsyncIterator[StoredCase]:
    """Read the cases of a dataset in order, one in memory at a time; raises `UnknownDataset`."""
    async with conn.transaction():
        await read_dataset(conn, project=project, name=name)
        async with conn.cursor() as cursor:
            async for row in cursor.stream(query("dataset_cases"), [project, name, limit]):
                position, case_id, input_, expected, tags, fields = row
                case = Case(case_id, _value(input_), _value(expected), _value(fields))
                yield StoredCase(position, case, tuple(tags))


def _value(body: str | None) -> Any:  # noqa: ANN401 - any JSON value
    return None if body is None else from_json(body)


async def mentions(conn: Connection, names: Iterable[str], *, project: str, name: str) -> bool:
    """Return whether any case of a dataset has a field with one of these names."""
    pattern = f'"({"|".join(names)})"'
    row = await (await conn.execute(query("dataset_mentions"), [project, name, pattern])).fetchone()
    return bool(row and row[0])
