"""Figures of panels are printed with their unit."""

from datetime import UTC, datetime

import pytest

from scoreline.local.observe.numbers import figure


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (0.2583, "percentunit", "25.8%"),
        (0.021546, "currencyUSD", "$0.02155"),
        (30.91, "ops", "30.9/s"),
        (487.5, "ms", "488 ms"),
        (0, "s", "0 s"),
        (186_983, "bytes", "0.187 MB"),
        (1_000_000.0, "short", "1,000,000"),
        ("running", "string", "running"),
        (True, "", "True"),
        (datetime(2026, 11, 16, 9, 30, tzinfo=UTC), "", "09:30:00"),
    ],
)
def test_a_figure_has_its_unit(value, unit, expected):
    """Values are printed in a readable unit."""
    assert figure(value, unit) == expected
