"""Rows as cases: how columns map to fields, how cases are named, and text that the log can't hold."""

import tracemalloc
from pathlib import Path

import pytest

from scoreline.submit.datasets.columns import Columns
from scoreline.submit.datasets.rows import file_rows
from tests.unit.scoreline.submit.datasets.case_files import written

SHARED = Path(__file__).parents[6] / "shared" / "data"


def test_a_long_file_is_read_row_by_row(tmp_path):
    """Reading a file takes the memory of one row, not of the file, in every format."""
    body, count = "x" * 40_000, 200
    texts = {
        "a.jsonl": f'{{"input": "{body}"}}\n' * count,
        "a.json": "[" + ",".join([f'{{"input": "{body}"}}'] * count) + "]",
        "a.csv": "input\n" + f"{body}\n" * count,
        "a.yaml": f"- input: {body}\n" * count,
    }
    for name, text in texts.items():
        path = written(tmp_path, name, text)
        tracemalloc.start()
        assert sum(1 for _ in file_rows(path)) == count
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < path.stat().st_size / 2, name


@pytest.mark.skipif(not SHARED.exists(), reason="the public datasets are not here")
@pytest.mark.parametrize(
    ("file", "columns", "cases", "expected"),
    [
        ("gsm8k/test_first200.jsonl", Columns(), 200, True),
        ("inspect/popularity.jsonl", Columns(), 100, False),
        ("humaneval/HumanEval.jsonl.gz", Columns(id="task_id"), 164, False),
        ("bbh/object_counting_few_shot_template_0-255000.json", Columns(records="outputs"), 250, True),
    ],
)
def test_public_datasets_are_read_as_they_are(file, columns, cases, expected):
    """Datasets that people really use need no conversion."""
    rows = list(file_rows(SHARED / file, columns))
    assert len(rows) == cases
    assert all(isinstance(row.case.input, str) for row in rows)
    assert all((row.case.expected is not None) == expected for row in rows)
