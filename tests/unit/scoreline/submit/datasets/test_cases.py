"""Rows become cases: how columns map to fields, and text that the log can't hold."""

from typing import Any

import pytest

from eventlog.payloads import Case
from scoreline.submit.datasets.cases import row_of
from scoreline.submit.datasets.columns import Columns
from scoreline.submit.datasets.errors import Unfit


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
