"""Rows as cases: how columns map to fields, how cases are named, and text that the log can't hold."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from eventlog.payloads import Case
from scoreline.submit.datasets.cases import row_of
from scoreline.submit.datasets.columns import Columns
from scoreline.submit.datasets.errors import Unfit
from scoreline.submit.datasets.id_index import IdIndex
from scoreline.submit.datasets.rows import file_rows
from tests.unit.scoreline.submit.datasets.test_file_formats import refused, written

SHARED = Path(__file__).parents[6] / "shared" / "data"


def case_of(columns: Columns | None = None, **fields: Any) -> Case:
    return row_of(fields, 7, line=9, columns=columns or Columns()).case


def unfit(columns: Columns | None = None, **fields: Any) -> str:
    with pytest.raises(Unfit) as caught:
        case_of(columns, **fields)
    return str(caught.value)


@pytest.mark.parametrize("name", ["input", "question", "prompt"])
@pytest.mark.parametrize("answer", ["expected", "target", "ideal", "expectedOutput", "answer"])
def test_the_usual_names_are_known(name, answer):
    """Columns with common names need no mapping."""
    case = case_of(None, **{name: "Q", answer: "A"})
    assert (case.id, case.input, case.expected) == ("7", "Q", "A")


def test_every_field_stays_under_its_own_name():
    """Templates can name any column, also the one that was taken as the input."""
    case = case_of(id=3, question="Q", answer="A", level=2, tags=["x"], metadata={"level": 9, "lang": "en"})
    assert case == Case(
        id="3",
        input="Q",
        expected="A",
        metadata={
            "question": "Q",
            "answer": "A",
            "level": 2,
            "tags": ["x"],
            "metadata": {"level": 9, "lang": "en"},
            "lang": "en",
        },
    )


def test_a_mapping_goes_into_objects_and_before_the_usual_names():
    """Dotted paths reach into objects; a mapping overrides a common name, whose value is kept."""
    columns = Columns(id="meta.key", input="body.text", expected="gold")
    case = case_of(columns, meta={"key": "k1"}, body={"text": "Q"}, gold=["A"], input="other")
    assert (case.id, case.input, case.expected) == ("k1", "Q", ["A"])
    assert case.metadata["input"] == "other"


def test_a_mapped_column_that_is_not_there_is_named_with_its_neighbours():
    """The error lists the columns there are and the nearest of them."""
    message = unfit(Columns(input="qestion"), question="Q", answer="A")
    assert "no column 'qestion'" in message
    assert "question, answer" in message
    assert "Did you mean 'question'?" in message


@pytest.mark.parametrize(
    ("identifier", "reason"),
    [
        ("", "empty"),
        ("x" * 201, "longer than 200"),
        ("a\nb", "control characters"),
        (True, "true or false"),
        (1.5, "a number"),
        ([1], "a list"),
    ],
)
def test_an_unusable_id_is_refused(identifier, reason):
    """Ids are printed and searched for, so they are short texts or whole numbers."""
    assert reason in unfit(id=identifier)


def test_text_that_the_database_can_not_hold_is_made_safe():
    """NULs and halves of surrogate pairs are replaced, in names too."""
    case = case_of(None, **{"input": "a\0b", "k\0": "\ud800"})
    assert case.input == "a\ufffdb"
    assert case.metadata == {"k\ufffd": "?"}


def test_a_case_leaves_room_for_its_answer():
    """A case takes half of an event at most."""
    assert "512 are allowed" in unfit(input="x" * 600_000)


def test_an_id_that_comes_again_names_the_first(tmp_path):
    """Of two rows with one id, both lines are named."""
    text = "".join(json.dumps({"id": key}) + "\n" for key in ("a", "b", "a"))
    bad = refused(written(tmp_path, "a.jsonl", text))
    assert (bad.line, bad.reason) == (3, "the id 'a' was there before, in line 1")


def test_a_position_that_equals_another_rows_id_is_refused(tmp_path):
    """A row without an id is named by its position, which must not be the id of another row."""
    bad = refused(written(tmp_path, "a.jsonl", '{"id": "2"}\n{"input": 1}\n'))
    assert bad.line == 2


def test_ids_are_remembered_in_little_memory():
    """A million ids of any length take less than 200 MB: here a twentieth of them."""
    tracemalloc.start()
    seen = IdIndex()
    for number in range(50_000):
        assert seen.add(f"{'long' * 20}-{number}", number) is None
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 200e6 / 20
    assert seen.add(f"{'long' * 20}-77", 60_000) == 77


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
