"""Limits of dataset files that hold before a parser has filled the memory."""

import gzip
import io
from pathlib import Path

import pytest

from scoreline.submit import groups
from scoreline.submit.datasets import file_formats, id_index
from scoreline.submit.datasets.columns import Columns, no_column
from scoreline.submit.datasets.errors import Unfit
from scoreline.submit.datasets.id_index import IdIndex
from scoreline.submit.datasets.metered_stream import READ_AHEAD, MeteredStream
from scoreline.submit.datasets.plain_yaml import PlainLoader
from scoreline.submit.datasets.record import MAX_ROW_BYTES
from scoreline.submit.datasets.rows import file_rows
from scoreline.submit.group_fields import GroupFields
from scoreline.submit.groups import DisjointGroups, SerialLinker
from tests.unit.scoreline.submit.datasets.test_file_formats import refused, unreadable, written


def test_a_token_is_bounded_and_an_event_resets_the_count():
    """A parser that yields reads on without a limit; one that does not is stopped after one row's size."""
    stream = MeteredStream(io.BytesIO(b"x" * (3 * MAX_ROW_BYTES)))
    for _ in range(3):
        stream.read(MAX_ROW_BYTES - READ_AHEAD)
        stream.progressed()
    stream = MeteredStream(io.BytesIO(b"x" * (3 * MAX_ROW_BYTES)))
    stream.read(MAX_ROW_BYTES + READ_AHEAD + 1)
    with pytest.raises(Unfit, match="one value is longer than 2 MB, before byte 2,228,225"):
        stream.read(1)


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


def test_rows_of_a_table_end_at_the_limit_though_each_line_is_short(tmp_path):
    """Quoted fields with line breaks and many columns cannot exceed the size of a row."""
    assert (
        "row is longer than 2 MB"
        in refused(written(tmp_path, "a.csv", "input\n" + '"x\n",' * 600_000)).reason
    )
    names = ",".join(f"c{number}" for number in range(100_000))
    assert "two columns are named 'c7'" in refused(written(tmp_path, "b.csv", f"{names},c7\n")).reason


def test_a_gzip_bomb_is_refused(tmp_path, monkeypatch):
    """Above a minimum size the compression ratio is limited; smaller files are read whole."""
    path = written(tmp_path, "a.jsonl.gz", b'{"input": "%s"}\n' % (b"x" * 100_000) * 20)
    assert len(list(file_rows(path))) == 20
    monkeypatch.setattr(file_formats, "ALWAYS_UNPACKED", 1_000_000)
    assert "more than 100 times as many" in unreadable(path)
    incompressible = b"".join(b'{"input": "%d"}\n' % (number**9) for number in range(60_000))
    honest = tmp_path / "b.jsonl.gz"
    honest.write_bytes(gzip.compress(incompressible))
    assert len(list(file_rows(honest))) == 60_000


def test_ids_on_disk_are_found_like_those_in_memory(monkeypatch):
    """A repeated id is found however many ids lie between, and the table on disk is removed."""
    monkeypatch.setattr(id_index, "MAX_IN_MEMORY", 10)
    with IdIndex() as ids:
        assert [ids.add(f"id-{number}", number) for number in range(1, 96)] == [None] * 95
        assert len(ids._newest) < 10
        assert (ids.add("id-1", 200), ids.add("id-77", 201), ids.add("id-94", 202)) == (1, 77, 94)
        assert ids._older is not None
        folder = ids._older.execute("PRAGMA database_list").fetchone()[2]
    assert not Path(folder).exists()


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


def test_errors_are_short_whatever_the_row_holds():
    """A hundred thousand long columns make neither a long message nor a long search."""
    message = no_column("input", (f"{number}{'x' * 10_000}" for number in range(100_000)))
    assert len(message) < 5_000


def test_groups_and_turns_are_limited(monkeypatch):
    """What a submission keeps in memory of its groups is bounded, and the error has the remedy."""
    monkeypatch.setattr(groups, "MAX_TURNS", 3)
    sequencing = SerialLinker(DisjointGroups())
    for case in range(1, 4):
        sequencing.next(case, GroupFields(conversation="long"))
    with pytest.raises(Unfit, match="'long' has more than 3 turns: split it"):
        sequencing.next(4, GroupFields(conversation="long"))
    monkeypatch.setattr("scoreline.submit.group_fields.MAX_GROUPS", 5)
    for case in range(5, 9):
        sequencing.next(case, GroupFields(conversation=f"c{case}"))
    with pytest.raises(Unfit, match="more than 5 conversations"):
        sequencing.next(9, GroupFields(conversation="c9"))
