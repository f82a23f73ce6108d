"""Files of cases for tests."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from eventlog.payloads import Case
from scoreline.submit.datasets.cases import row_of
from scoreline.submit.datasets.columns import Columns
from scoreline.submit.datasets.errors import DatasetError, RowError, Unfit
from scoreline.submit.datasets.rows import file_rows

ROWS = [
    {"id": "a", "input": "1 + 1", "expected": "2", "level": "easy"},
    {"id": "b", "input": "2 + 2", "expected": "4", "level": "hard"},
]


def written(folder: Path, name: str, text: str | bytes) -> Path:
    body = text if isinstance(text, bytes) else text.encode()
    path = folder / name
    path.write_bytes(gzip.compress(body) if name.endswith(".gz") else body)
    return path


def unreadable(path: Path, columns: Columns | None = None) -> str:
    with pytest.raises(DatasetError) as caught:
        list(file_rows(path, columns))
    return str(caught.value)


def refused(path: Path, columns: Columns | None = None) -> RowError:
    with pytest.raises(RowError) as caught:
        list(file_rows(path, columns))
    return caught.value


def case_of(columns: Columns | None = None, **fields: Any) -> Case:
    return row_of(fields, 7, line=9, columns=columns or Columns()).case


def unfit(columns: Columns | None = None, **fields: Any) -> str:
    with pytest.raises(Unfit) as caught:
        case_of(columns, **fields)
    return str(caught.value)
