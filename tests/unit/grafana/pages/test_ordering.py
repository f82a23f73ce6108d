"""The dashboard of event ordering."""

import pytest

from grafana.model import Panel, Prom
from grafana.pages.ordering import PAGE


def panel(title: str) -> Panel:
    [found] = [each for each in PAGE.panels if each.title == title]
    return found


@pytest.mark.parametrize(
    ("title", "metric"),
    [
        ("From recording to Redis' answer", "eval_event_queue_delay_ms"),
        ("One pass", "eval_storage_pass_ms"),
    ],
)
def test_durations_are_shown_as_three_quantiles_of_their_histogram(title, metric):
    """Each legend is that of its share, over the buckets of all processes together."""
    shown = {query.legend: query.expr for query in panel(title).queries if isinstance(query, Prom)}
    rate = f"sum by (le) (rate({metric}_bucket[$__rate_interval]))"
    assert shown == {
        "p50": f"histogram_quantile(0.5, {rate})",
        "p95": f"histogram_quantile(0.95, {rate})",
        "p99": f"histogram_quantile(0.99, {rate})",
    }


def test_ordering_is_green_only_while_no_storage_worker_is_degraded():
    """One degraded worker is enough for red: the maximum of all is taken."""
    [query] = panel("Ordering").queries
    assert query.text == "1 - max(eval_storage_degraded)"
    assert [(step.value, step.color) for step in panel("Ordering").steps] == [(None, "red"), (1, "green")]
