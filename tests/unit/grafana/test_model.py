"""Panels as data: their metrics are in the contract and their descriptions complete."""

import re

import pytest

from grafana.catalogue import DASHBOARDS
from grafana.model import Panel, Prom
from scoreline.observability.alerts.rules import VALUE
from tests.unit.grafana.panel_texts import ROOT

TELEMETRY = ROOT / "docs" / "reference" / "telemetry.md"


NUMBERLESS = {"table"}


EVERYWHERE = {"job", "instance", "le"}


PANELS = [
    pytest.param(panel, id=f"{page.uid}: {panel.title}") for page in DASHBOARDS for panel in page.panels
]


def contract() -> dict[str, tuple[str, set[str]]]:
    """Read the tables of metrics: of each its kind and its labels."""
    found = {}
    for line in TELEMETRY.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 4 and cells[0].startswith("`eval_"):
            labels = set(re.findall(r"`(\w+)`", re.sub(r"\(.*?\)", "", cells[2])))
            for name in re.findall(r"`(eval_\w+)`", cells[0]):
                found[name] = (cells[1], labels)
    return found


METRICS = contract() | {VALUE: ("gauge", {"alertname", "alertstate", "severity"})}


def base(name: str) -> str:
    """Take from a series of a histogram the name of the histogram."""
    short = re.sub(r"_(bucket|sum|count)$", "", name)
    return short if METRICS.get(short, ("", set()))[0] == "histogram" else name


def asked(panel: Panel) -> list[str]:
    return [query.expr for query in panel.queries if isinstance(query, Prom)]


def test_the_contract_is_read():
    """The tables have the form that this test reads: else it would find nothing wrong."""
    assert METRICS["eval_worker_task_duration_ms"] == ("histogram", {"worker_id", "eval_mode"})
    assert METRICS["eval_lane_tpm_limit"] == ("gauge", {"lane"})
    assert len(METRICS) > 60


@pytest.mark.parametrize("panel", PANELS)
def test_every_metric_and_label_of_a_panel_is_in_the_contract(panel):
    """Each metric and label of a panel is defined in docs/reference/telemetry.md."""
    for expr in asked(panel):
        names = {base(name) for name in re.findall(r"\beval_\w+", re.sub(r"\beval_mode\b", "", expr))}
        assert names <= METRICS.keys(), expr
        known = EVERYWHERE.union(*(METRICS[name][1] for name in names))
        grouped = {label for group in re.findall(r"\bby \(([^)]*)\)", expr) for label in group.split(", ")}
        matched = set(re.findall(r"(\w+)\s*(?:=~|!=|!~|=)\s*[\"']", expr))
        if names:
            assert grouped | matched <= known, expr


@pytest.mark.parametrize("panel", PANELS)
def test_every_panel_describes_what_it_shows_and_what_to_do(panel):
    """Each has a description with the next step, and numbers have units."""
    assert panel.shows.endswith(".")
    assert panel.when_red.endswith((".", "`."))
    assert panel.kind in NUMBERLESS or panel.unit
