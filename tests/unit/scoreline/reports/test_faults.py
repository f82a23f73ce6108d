"""The fault of a failed evaluation."""

import pytest

from scoreline.reports.faults import why_ended


@pytest.mark.parametrize(
    ("status", "error", "closing", "text"),
    [
        ("failed", '{"kind": "permanent", "message": "no"}', None, "permanent: no"),
        ("failed", None, None, "failed"),
        (
            "timed_out",
            None,
            '{"limit": "batch", "seconds": 60}',
            "timed_out: the batch limit of 60 s passed",
        ),
        ("cancelled", None, '{"by": "me", "reason": "enough"}', "cancelled: by me: enough"),
        ("completed", None, None, "None"),
    ],
)
def test_the_fault_is_read_from_the_scorecard_or_the_closing_event(
    status: str, error: str | None, closing: str | None, text: str
) -> None:
    """The fault of an ended evaluation has a kind and a message; a completed one has none."""
    assert str(why_ended(status, error, closing)) == text
