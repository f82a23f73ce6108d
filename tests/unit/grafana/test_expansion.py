"""What Grafana would put in for macros and variables."""

from datetime import UTC, datetime, timedelta

import pytest

from grafana.expansion import UnknownMacro, Window, expand

WINDOW = Window(
    since=datetime(2026, 11, 16, 9, tzinfo=UTC),
    until=datetime(2026, 11, 16, 10, tzinfo=UTC),
    interval=timedelta(seconds=15),
    rate_interval=timedelta(seconds=60),
)
SINCE, UNTIL = "'2026-11-16T09:00:00+00:00'", "'2026-11-16T10:00:00+00:00'"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rate(x[$__rate_interval])", "rate(x[60s])"),
        ("x[$__interval] $__range", "x[15s] 3600s"),
        ('x{batch_id=~"$batch"}', 'x{batch_id=~"b\'1"}'),
        ("WHERE id = ${batch:sqlstring}", "WHERE id = 'b''1'"),
        ("$__timeFilter(s.ended_at)", f"s.ended_at BETWEEN {SINCE} AND {UNTIL}"),
        ("$__timeFrom() $__timeTo()", f"{SINCE} {UNTIL}"),
        ("$__timeGroup(s.ended_at, $__interval)", "floor(extract(epoch from s.ended_at)/15)*15"),
    ],
)
def test_macros_and_variables_are_put_in(text, expected):
    """As Grafana does it; a value with a quote in it stays one string."""
    assert expand(text, WINDOW, {"batch": "b'1"}) == expected


@pytest.mark.parametrize("text", ["$unknown", "${batch:csv}", "$__unixEpochFilter(x)"])
def test_what_is_not_known_is_not_asked(text):
    """A macro that only Grafana knows would pass here unnoticed and fail there, or the other way round."""
    with pytest.raises(UnknownMacro):
        expand(text, WINDOW, {"batch": "b"})
