"""Files of cases in every format: read alike, and refused with the place and the reason."""

import gzip
import json

import pytest

from scoreline.submit.datasets.errors import DatasetError, RowError
from scoreline.submit.datasets.rows import file_rows
from tests.unit.scoreline.submit.datasets.case_files import ROWS, refused, unreadable, written

TEXTS = {
    "cases.jsonl": "\n".join(map(json.dumps, ROWS)),
    "cases.ndjson": "\n\n".join(map(json.dumps, ROWS)) + "\n",
    "cases.json": json.dumps(ROWS),
    "cases.csv": "id,input,expected,level\na,1 + 1,2,easy\nb,2 + 2,4,hard\n",
    "cases.yaml": "- {id: a, input: 1 + 1, expected: '2', level: easy}\n"
    "- id: b\n  input: 2 + 2\n  expected: '4'\n  level: hard\n",
}


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "marked"])
@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("name", TEXTS)
def test_every_format_gives_the_same_cases(tmp_path, name, packed, mark):
    """Format, compression and a byte order mark make no difference to what is read."""
    path = written(tmp_path, name + packed, mark + TEXTS[name].encode())
    rows = list(file_rows(path))
    assert [(r.case.id, r.case.input, r.case.expected, r.case.metadata) for r in rows] == [
        ("a", "1 + 1", "2", {"level": "easy"}),
        ("b", "2 + 2", "4", {"level": "hard"}),
    ]
    assert [row.position for row in rows] == [1, 2]


def test_the_content_of_a_file_must_match_its_suffix(tmp_path):
    """A name without a format, a .gz file without gzip, and gzip without .gz each have their own error."""
    assert "must end in .jsonl" in unreadable(written(tmp_path, "cases.txt", "{}"))
    disguised = tmp_path / "cases.jsonl"
    disguised.write_bytes(gzip.compress(b"{}"))
    assert "must end in .gz" in unreadable(disguised)
    wrong = tmp_path / "cases.jsonl.gz"
    wrong.write_bytes(b'{"id": 1}\n')
    assert "not readable as gzip" in unreadable(wrong)
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(gzip.compress(b'{"input": "x"}\n' * 1_000)[:-12])
    assert "not readable as gzip" in unreadable(cut)


def test_a_file_that_is_not_there_is_named(tmp_path):
    """A missing file and a folder are one line each, not a traceback."""
    assert "No such file" in unreadable(tmp_path / "nowhere.jsonl")
    (tmp_path / "folder.json").mkdir()
    assert "directory" in unreadable(tmp_path / "folder.json")


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.yaml"])
def test_an_empty_file_is_no_dataset(tmp_path, name):
    """Nothing to evaluate is an error, in whichever format."""
    with pytest.raises((DatasetError, RowError)):
        list(file_rows(written(tmp_path, name, "")))


@pytest.mark.parametrize(
    ("name", "text", "line", "reason"),
    [
        ("a.jsonl", '{"input": 1}\n\n{"input": \n', 3, "broken JSON"),
        ("a.jsonl", '{"input": 1}\n[1]\n', 2, "this is a list"),
        ("a.jsonl", '{"input": NaN}\n', 1, "broken JSON"),
        ("a.jsonl", b'{"input": 1}\n{"input": "caf\xe9"}\n', 2, "not UTF-8: byte 0xe9 at 15"),
        ("a.jsonl", '{"input": ' + "[" * 150 + "]" * 150 + "}", 1, "nested"),
        ("a.json", '[{"input": 1}, "two"]', 2, "this is a text"),
        ("a.json", '[{"input": 1}, {"input": }]', 2, "broken JSON"),
        ("a.json", '[{"input": 1}', 2, "broken JSON"),
        ("a.json", '[{"input": 1}, {"input": ' + "[" * 150 + "]" * 150 + "}]", 2, "nested"),
        ("a.csv", "input,b\n1,2\n1,2,3\n", 3, "3 values, the first line names 2"),
        ("a.csv", 'input\n"two\nlines"\n"open', 4, "broken CSV"),
        ("a.csv", "input,input\n1,2\n", 1, "two columns are named 'input'"),
        ("a.csv", b"input\nok\ncaf\xe9\n", 3, "not UTF-8"),
        ("a.yaml", "- input: 1\n- two\n", 2, "this is a text"),
        ("a.yaml", "- input: 1\n- input: [\n", 2, "broken YAML"),
        ("a.yaml", "- input: 1\n- input: !!python/object/apply:os.getcwd []\n", 2, "broken YAML"),
        ("a.yaml", "- input: &x 1\n- input: *x\n", 2, "aliases"),
        ("a.yaml", "- input: 1\n- 2: x\n", 2, "put it in quotes"),
        ("a.yaml", "- input: 1\n- input: .nan\n", 2, "NaN and Infinity"),
    ],
)
def test_a_bad_row_is_named_with_its_place_and_reason(tmp_path, name, text, line, reason):
    """Whatever is wrong with a row, the error has its place and the reason."""
    bad = refused(written(tmp_path, name, text))
    assert (bad.line, bad.unit) == (line, "line" if name in ("a.jsonl", "a.csv") else "record")
    assert reason in bad.reason
    assert name in str(bad)
    assert "\n" not in str(bad)


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.yaml"])
def test_an_oversized_row_is_refused_before_it_fills_the_memory(tmp_path, name):
    """Three megabytes in one row are more likely a mistake than a case."""
    long = "x" * 3_000_000
    text = {
        "a.jsonl": json.dumps({"input": long}),
        "a.json": json.dumps([{"input": long}]),
        "a.csv": f"input\n{long}\n",
        "a.yaml": f"- input: {long}\n",
    }[name]
    assert "longer than 2 MB" in refused(written(tmp_path, name, text)).reason
