"""Tables, read line by line within their limits."""

from scoreline.submit.datasets.rows import file_rows
from tests.unit.scoreline.submit.datasets.case_files import refused, written


def test_rows_of_a_table_end_at_the_limit_though_each_line_is_short(tmp_path):
    """Quoted fields with line breaks and many columns cannot exceed the size of a row."""
    assert (
        "row is longer than 2 MB"
        in refused(written(tmp_path, "a.csv", "input\n" + '"x\n",' * 600_000)).reason
    )
    names = ",".join(f"c{number}" for number in range(100_000))
    assert "two columns are named 'c7'" in refused(written(tmp_path, "b.csv", f"{names},c7\n")).reason


def test_cells_of_a_table_are_parsed(tmp_path):
    """An empty expected value is none, and tags and metadata may be JSON."""
    text = 'input,expected,tags,metadata\nx,,"a, b","{""level"": 3}"\ny,1,"[""c""]",\n'
    first, second = file_rows(written(tmp_path, "a.csv", text))
    assert (first.case.expected, first.tags, first.case.metadata["level"]) == (None, ("a", "b"), 3)
    assert (second.case.expected, second.tags) == ("1", ("c",))
