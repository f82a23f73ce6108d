"""Times that not every reader can represent."""

from datetime import UTC, datetime

from eventlog.time_range import EARLIEST, LATEST, clamped


def test_clamped_leaves_ordinary_times_alone() -> None:
    """Only the first and the last year of the calendar are affected."""
    ordinary = datetime(2026, 11, 16, tzinfo=UTC)
    assert clamped(ordinary) is ordinary
    assert (clamped(datetime.min.replace(tzinfo=UTC)), clamped(datetime.max.replace(tzinfo=UTC))) == (
        EARLIEST, LATEST,
    )  # fmt: skip
