"""Texts for terminals: durations, amounts, counts and foreign text on one line."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from scoreline.formatting import clipped, clock, counted, excerpt, money, printable, span, stamp


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0004, "0 ms"),
        (0.25, "250 ms"),
        (30.2, "30.2 s"),
        (63, "1 min 3 s"),
        (3_780, "1 h 3 min"),
        (100_000, "1 d 3 h"),
        (-2, "-2.0 s"),
    ],
)
def test_spans_have_at_most_two_units(seconds: float, text: str):
    """A span has the units that fit its length, two at most."""
    assert span(timedelta(seconds=seconds)) == text


def test_money_has_no_trailing_zeros():
    """Amounts of dollars, cents and fractions of cents have no trailing zeros."""
    assert [money(amount) for amount in (0, 0.001, 1.5, 2)] == ["$0", "$0.001", "$1.5", "$2"]


def test_excerpts_are_one_short_line():
    """Line breaks become spaces, and a long text is cut with an ellipsis."""
    assert excerpt("one\n two\tthree", 40) == "one two three"
    assert excerpt("x" * 500_000, 10) == "x" * 9 + "…"


def test_control_characters_are_escaped_and_line_breaks_are_kept():
    """A terminal must not interpret what a model has answered."""
    assert printable("a\x1b[31mb\u202ec\nd") == "a\\x1b[31mb\\u202ec\nd"


def test_a_clipped_line_keeps_its_spaces():
    """Only a line that is longer than its limit ends with an ellipsis."""
    assert clipped("  two  ", 7) == "  two  "
    assert clipped("  two  x", 7) == "  two …"


def test_an_escaped_line_is_clipped_at_its_printed_length():
    """An escape sequence takes four columns, not one."""
    assert clipped("\x07" * 3, 7) == "\\x07\\x…"


def test_times_are_shown_in_utc_with_milliseconds():
    """Whatever zone a time was given in."""
    at = datetime(2026, 1, 2, 1, 30, 0, 999_999, tzinfo=timezone(timedelta(hours=2)))
    assert stamp(at) == "2026-01-01 23:30:00.999 UTC"
    assert clock(at.astimezone(UTC)) == "23:30:00.999"


def test_only_one_is_singular():
    """A noun with an irregular plural brings it along."""
    assert [counted(number, "case") for number in (0, 1, 2_000)] == ["0 cases", "1 case", "2,000 cases"]
    assert counted(2, "retry", "retries") == "2 retries"
