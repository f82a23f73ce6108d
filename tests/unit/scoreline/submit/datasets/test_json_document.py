"""JSON documents of cases."""

import json

from scoreline.submit.datasets.columns import Columns
from scoreline.submit.datasets.rows import file_rows
from tests.unit.scoreline.submit.datasets.case_files import ROWS, unreadable, written


def test_records_of_a_document_are_found_by_a_dotted_path(tmp_path):
    """The list of rows may be anywhere in a JSON or YAML document."""
    document = {"about": {"lists": [[1]]}, "data": {"rows": ROWS, "more": 1}}
    for name in ("a.json", "a.yaml"):
        path = written(tmp_path, name, json.dumps(document))
        assert [row.case.id for row in file_rows(path, Columns(records="data.rows"))] == ["a", "b"]
        assert "records" in unreadable(path)
        assert "there is no list of rows" in unreadable(path, Columns(records="data.lines"))
    path = written(tmp_path, "a.json", json.dumps(document))
    assert "'about.lists', 'data.rows'" in unreadable(path, Columns(records="rows"))
    assert "every line is a row" in unreadable(written(tmp_path, "a.jsonl", "{}"), Columns(records="rows"))
