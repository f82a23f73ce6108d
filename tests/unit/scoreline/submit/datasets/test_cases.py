"""Rows become cases: how columns map to fields, and text that the log can't hold."""

import pytest

from eventlog.payloads import Case
from tests.unit.scoreline.submit.datasets.case_files import case_of, unfit


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
