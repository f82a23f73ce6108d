"""The value of `--since` is an age or a time."""

from datetime import UTC, datetime, timedelta

import pytest

from scoreline.reports.audit.since import parse_since


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("90s", timedelta(seconds=90)),
        ("15m", timedelta(minutes=15)),
        ("2h", timedelta(hours=2)),
        ("3d", timedelta(days=3)),
        ("2026-11-16T09:30:00Z", datetime(2026, 11, 16, 9, 30, tzinfo=UTC)),
        ("2026-11-16T09:30:00", datetime(2026, 11, 16, 9, 30, tzinfo=UTC)),
        ("2026-11-16T11:30:00+02:00", datetime(2026, 11, 16, 9, 30, tzinfo=UTC)),
        ("2026-11-16", datetime(2026, 11, 16, tzinfo=UTC)),
    ],
)
def test_an_age_or_a_time(text: str, value: timedelta | datetime) -> None:
    """Times without a zone are in UTC."""
    assert parse_since(text) == value


@pytest.mark.parametrize(
    "text", ["", "soon", "2", "2w", "-1h", "1.5h", "999999999d", "0001-01-01T00:00:00+14:00"]
)
def test_anything_else_is_refused(text: str) -> None:
    """Also an age or a time that no clock has."""
    with pytest.raises(ValueError, match=r"isoformat|range"):
        parse_since(text)
