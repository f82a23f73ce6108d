"""Whether a dataset may tie cases together, found out without reading its rows.

A word that stands somewhere is no mark yet: it only means that the rows must be looked at.
"""

import re
from pathlib import Path

from psycopg import AsyncConnection

from projections.datasets.repository import mentions
from scoreline.problem import Problem
from scoreline.submit.datasets.file_formats import opened
from scoreline.submit.datasets.sources import FileSource, ImportedSource, Source, SyntheticSource
from scoreline.submit.group_fields import MARKS

_CHUNK = 1024 * 1024
_WORD = re.compile("|".join(MARKS).encode())


async def may_have_marks(source: Source, *, postgres_url: str | None) -> bool:
    """Whether the names of marks occur in a dataset at all."""
    match source:
        case FileSource(path=path):
            return _mentions(path)
        case ImportedSource(project=project, name=name):
            if postgres_url is None:
                raise Problem(f"The dataset {name!r} is in the database, and none is at hand.")
            async with await AsyncConnection.connect(postgres_url) as conn:
                return await mentions(conn, MARKS, project=project, name=name)
        case SyntheticSource():
            return False


def _mentions(path: Path) -> bool:
    overlap = b""
    with opened(path) as stream:
        while chunk := stream.read(_CHUNK):
            if _WORD.search(overlap + chunk):
                return True
            overlap = chunk[-32:]
    return False
