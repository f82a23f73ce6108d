"""What panels show, judged and written."""

from datetime import UTC, datetime

import pytest

from grafana.model import Panel, Prom
from scoreline.local.observe.numbers import figure
from scoreline.local.observe.panel_queries import PanelResult, QueryResult
from scoreline.local.observe.view import document, problems


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
    """As somebody would say it."""
    assert figure(value, unit) == expected


def shown(*told: QueryResult, quiet: str = "") -> PanelResult:
    panel = Panel("P", "stat", [Prom("x")] * len(told), "s", "r", quiet=quiet)
    return PanelResult("R", panel, told)


def test_a_panel_that_ought_to_show_something_and_does_not_is_a_problem():
    """One empty query among several is enough; a panel that may be empty is none; an error always is."""
    full, empty, wrong = (
        QueryResult("full", 1),
        QueryResult("empty"),
        QueryResult("wrong", error="parse error"),
    )
    found = {
        "D": [
            shown(full),
            shown(full, empty),
            shown(empty, quiet="calm"),
            shown(wrong, quiet="calm"),
        ]
    }
    assert problems(found) == ["D / R / P: no data: empty", "D / R / P: parse error: wrong"]
    assert document(found, seconds=1)["problems"] == problems(found)
