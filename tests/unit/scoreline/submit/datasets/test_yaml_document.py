"""YAML documents of cases."""

import pytest

from tests.unit.scoreline.submit.datasets.case_files import refused, unreadable, written


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("- input: 0b_\n", "'0b_' can't be read as int"),
        ("- input: !!int abc\n", "'abc' can't be read as int"),
        ("- input: !!bool maybe\n", "'maybe' can't be read as bool"),
        ("- input: !!float x\n", "'x' can't be read as float"),
        (f"- input: {'1' * 5_000}\n", "a number of 5,000 characters, 4,300 are allowed"),
        (f"- input: {'1:' * 3_000}1\n", "a number of 6,001 characters, 4,300 are allowed"),
        ("- {<<: 3}\n", "a merge key (<<) takes an object"),
        ("- !!set {a, b}\n", "the tag 'tag:yaml.org,2002:set' is not read here"),
        ("- !!seq x\n", "broken YAML"),
        ("- input: =\n", "broken YAML"),
    ],
)
def test_yaml_with_an_invalid_value_is_a_bad_row(tmp_path, text, reason):
    """A text that does not match its tag or pattern is an error message, not a traceback."""
    assert reason in refused(written(tmp_path, "a.yaml", text)).reason


def test_a_second_yaml_document_is_refused(tmp_path):
    """Its rows would be left out silently."""
    text = "- input: 1\n---\n- input: 2\n"
    assert "a second document begins with `---`" in unreadable(written(tmp_path, "a.yaml", text))
