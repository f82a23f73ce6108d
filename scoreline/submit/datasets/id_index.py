"""Ids that a dataset has had so far, and where: in a bounded amount of memory, however many there are.

The newest are held in a dictionary. When it is full it is written to a table on disk, in the order of its
keys, so that each page of the table is changed once.
"""

import sqlite3
from contextlib import ExitStack, closing
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

MAX_IN_MEMORY = 200_000
"""Ids held in memory: about 30 MB."""


class IdIndex:
    """Remembers ids by a digest; two of a million differ in theirs but for a chance of 1 in 30 million."""

    def __init__(self) -> None:
        self._newest: dict[int, int] = {}
        self._resources = ExitStack()
        self._older: sqlite3.Connection | None = None

    def __enter__(self) -> Self:
        """Lend it until its table on disk is to be removed."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the table on disk, if there is one."""
        self._resources.close()

    def add(self, identifier: str, line: int) -> int | None:
        """Remember an id; returns the line where it was before, if it was."""
        digest = blake2b(identifier.encode(errors="surrogatepass"), digest_size=8).digest()
        key = int.from_bytes(digest, signed=True)
        first = self._newest.setdefault(key, line)
        if first != line:
            return first
        if self._older is not None and (found := self._stored(key)) is not None:
            return found
        if len(self._newest) >= MAX_IN_MEMORY:
            self._store()
        return None

    def _stored(self, key: int) -> int | None:
        assert self._older is not None  # noqa: S101 - asked for only where there is one
        row = self._older.execute("SELECT line FROM seen WHERE key = ?", [key]).fetchone()
        return None if row is None else int(row[0])

    def _store(self) -> None:
        if self._older is None:
            self._older = self._opened()
        self._older.executemany("INSERT INTO seen VALUES (?, ?)", sorted(self._newest.items()))
        self._older.commit()
        self._newest.clear()

    def _opened(self) -> sqlite3.Connection:
        folder = self._resources.enter_context(TemporaryDirectory(prefix="scoreline-"))
        table = self._resources.enter_context(closing(sqlite3.connect(Path(folder, "ids.db"))))
        for statement in (
            "PRAGMA journal_mode = OFF",
            "PRAGMA synchronous = OFF",
            "PRAGMA cache_size = -16000",
            "CREATE TABLE seen (key INTEGER PRIMARY KEY, line INTEGER)",
        ):
            table.execute(statement)
        return table
