"""YAML without tags: values, limits and errors."""

import io

import pytest

from scoreline.submit.datasets.plain_yaml import PlainLoader
from scoreline.submit.datasets.rows import file_rows
from tests.unit.scoreline.submit.datasets.case_files import written


def begun(text: str) -> PlainLoader:
    loader = PlainLoader(io.BytesIO(text.encode()))
    loader.get_event()
    loader.get_event()
    return loader


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{a: 1, <<: {a: 2, b: 3}}", {"b": 3, "a": 1}),
        ("{<<: [{a: 1}, {a: 2, b: 3}], c: 4}", {"a": 1, "b": 3, "c": 4}),
        ("{=: 1, ! x: ! 2, 'y': !!str 3}", {"=": 1, "x": 2, "y": "3"}),
        ("[1, 0x1F, 1_000, 1.5, .inf, true, yes, null, ~, '', 2024-01-31, 1:30]", None),
        ("{a: [], b: {}, c: [[{}]]}", None),
        ("|\n  two\n  lines\n", "two\nlines\n"),
        ("{a: 1, a: 2}", {"a": 2}),
    ],
)
def test_values_built_from_events_are_those_composed_from_nodes(text, value):
    """Datasets, built without nodes, and specs, composed of nodes, are read alike."""
    by_events = begun(text).item()
    by_nodes = begun(text)
    found = [by_events, by_nodes.value(by_nodes.node())]
    assert found[0] == found[1]
    assert list(found[0]) == list(found[1])
    assert value is None or found[0] == value


def test_dates_in_yaml_stay_text(tmp_path):
    """A value without a JSON type stays text."""
    (row,) = file_rows(written(tmp_path, "a.yaml", "- input: 2024-01-31\n"))
    assert row.case.input == "2024-01-31"
