"""Columns of a row: by a mapping or by their usual names; a missing one is named with the closest match."""

import pytest

from scoreline.submit.datasets.columns import Columns, mapped_value, no_column
from tests.unit.scoreline.submit.datasets.case_files import case_of, unfit


@pytest.mark.parametrize("name", ["input", "question", "prompt"])
@pytest.mark.parametrize("answer", ["expected", "target", "ideal", "expectedOutput", "answer"])
def test_the_usual_names_are_known(name, answer):
    """Columns with common names need no mapping."""
    case = case_of(None, **{name: "Q", answer: "A"})
    assert (case.id, case.input, case.expected) == ("7", "Q", "A")


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


def test_errors_are_short_whatever_the_row_holds():
    """A hundred thousand long columns make neither a long message nor a long search."""
    message = no_column("input", (f"{number}{'x' * 10_000}" for number in range(100_000)))
    assert len(message) < 5_000


def test_a_mapped_column_may_be_empty_where_a_missing_one_is_an_error():
    """A null in the mapped column is a value: the usual names are not tried instead."""
    assert mapped_value({"gold": None, "expected": "A"}, "gold") is None
    assert case_of(Columns(expected="gold"), input="Q", gold=None, expected="A").expected is None


def test_at_most_twenty_columns_are_listed():
    """The list ends with an ellipsis; a row without columns is named as such."""
    twenty = [f"c{number}" for number in range(20)]
    assert no_column("text", twenty).endswith("c18, c19.")
    assert no_column("text", [*twenty, "c20"]).endswith("c18, c19, ….")
    assert no_column("text", []).endswith("The row has: none.")
