"""Results of dashboard panels: their problems and their printed form."""

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
    """Values are printed in a readable unit."""
    assert figure(value, unit) == expected


def shown(*results: QueryResult, quiet: str = "") -> PanelResult:
    panel = Panel("P", "stat", [Prom("x")] * len(results), "s", "r", quiet=quiet)
    return PanelResult("R", panel, results)


def test_an_unexpectedly_empty_panel_is_a_problem():
    """One empty query is a problem unless the panel may be empty; an error always is."""
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
