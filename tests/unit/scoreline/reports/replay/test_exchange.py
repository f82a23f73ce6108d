"""The prompt, the answer and the scores of an evaluation as text."""

from dataclasses import replace

from scoreline.reports.replay.exchange import KNOWN, NOT_READ, Exchange, exchange_document, exchange_lines
from tests.unit.scoreline.reports.export_rows import record

SENT = replace(record("4"), rendered_prompt="2 + 2?")


def text(exchange: Exchange) -> list[str]:
    return [line.plain for line in exchange_lines(exchange) if line.plain]


def test_every_part_of_an_exchange_has_a_title():
    """The prompt comes first, the scores last."""
    assert text(Exchange(SENT)) == [
        "Prompt as sent",
        "2 + 2?",
        "Expected",
        '["4"]',
        "Answer",
        "4",
        "exact: 0",
        "4",
    ]


def test_the_prompt_of_a_known_answer_was_not_sent():
    """Its title does not claim that it was; any other note stands behind the usual title."""
    assert text(Exchange(SENT, KNOWN))[0] == f"Prompt ({KNOWN})"
    assert text(Exchange(SENT, "alone"))[0] == "Prompt as sent (alone)"


def test_an_exchange_that_was_not_read_has_its_note_only():
    """Neither text nor JSON has an answer."""
    assert text(Exchange(None, NOT_READ)) == [f"Prompt as sent ({NOT_READ})"]
    document = exchange_document(Exchange(None, NOT_READ))
    assert document.pop("prompt_note") == NOT_READ
    assert set(document.values()) == {None}


def test_an_empty_answer_differs_from_a_missing_one():
    """Nothing is cut, and control characters are escaped."""
    assert "(none on record)" in text(Exchange(replace(SENT, output=None)))
    assert "(none on record)" not in text(Exchange(replace(SENT, output="")))
    long = "x" * 10_000
    assert f"{long}\\x07" in text(Exchange(replace(SENT, output=f"{long}\x07")))
