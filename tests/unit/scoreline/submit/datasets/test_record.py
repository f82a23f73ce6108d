"""A record is as deep as its limit."""

import pytest

from scoreline.submit.datasets.columns import Columns
from scoreline.submit.datasets.rows import file_rows
from tests.unit.scoreline.submit.datasets.case_files import refused, written


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", '{"skipped": ' + "[" * 250 + "]" * 250 + ', "rows": []}'),
        ("a.json", '{"rows": [{"input": 1}], "skipped": ' + "[" * 250 + "]" * 250 + "}"),
        ("a.yaml", "skipped: " + "[" * 250 + "]" * 250 + "\nrows: []"),
        ("a.yaml", "rows: [{input: 1}]\nskipped: " + "[" * 250 + "]" * 250),
    ],
)
def test_skipped_parts_have_a_depth_limit_too(tmp_path, name, text):
    """A document that is too deep is refused before, in and after the list of rows."""
    assert (
        "nested more than 200 deep"
        in refused(written(tmp_path, name, text), Columns(records="rows")).reason
    )


def test_a_record_may_be_as_deep_as_the_limit_wherever_its_list_is(tmp_path):
    """Levels around the list of rows take nothing from those of a row."""
    row = '{"input": ' + "[" * 99 + "]" * 99 + "}"
    for name in ("a.json", "a.yaml"):
        path = written(tmp_path, name, f'{{"data": {{"more": {{"rows": [{row}]}}}}}}')
        assert len(list(file_rows(path, Columns(records="data.more.rows")))) == 1
