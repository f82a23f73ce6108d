"""Results of dashboard panels: their problems and their printed form."""

from grafana.model import Panel, Prom
from scoreline.local.observe.panel_queries import PanelResult, QueryResult
from scoreline.local.observe.view import document, problems


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
