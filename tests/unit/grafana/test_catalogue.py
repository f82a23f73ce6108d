"""The dashboards as they are checked in: whole, true to the contract of metrics, and fit for Grafana."""

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from grafana.catalogue import DASHBOARDS, FOLDER, files
from grafana.model import SQL, Panel, Prom, Sql
from grafana.pages.addresses import others
from grafana.rendering import document
from scoreline.observability.alerts.rules import VALUE

ROOT = Path(__file__).parents[3]
TELEMETRY = ROOT / "docs" / "reference" / "telemetry.md"
NUMBERLESS = {"table"}
"""Kinds of panels whose numbers have their units by column."""
EVERYWHERE = {"job", "instance", "le"}

PANELS = [
    pytest.param(panel, id=f"{page.uid}: {panel.title}") for page in DASHBOARDS for panel in page.panels
]
PAGES = [pytest.param(page, id=page.uid) for page in DASHBOARDS]


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
"""Those of the processes, and what Prometheus records by our rules."""


def base(name: str) -> str:
    """Take from a series of a histogram the name of the histogram."""
    short = re.sub(r"_(bucket|sum|count)$", "", name)
    return short if METRICS.get(short, ("", set()))[0] == "histogram" else name


def asked(panel: Panel) -> list[str]:
    return [query.expr for query in panel.queries if isinstance(query, Prom)]


def rendered_panels(page: Any) -> list[dict[str, Any]]:
    return list(document(page)["panels"])


def test_the_contract_is_read():
    """The tables have the form that this test reads: else it would find nothing wrong."""
    assert METRICS["eval_worker_task_duration_ms"] == ("histogram", {"worker_id", "eval_mode"})
    assert METRICS["eval_lane_tpm_limit"] == ("gauge", {"lane"})
    assert len(METRICS) > 60


def test_what_is_checked_in_is_what_is_generated():
    """`make dashboards` would change nothing."""
    assert {path: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")} == files()


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


@pytest.mark.parametrize("page", PAGES)
def test_ids_are_unique_and_panels_do_not_overlap(page):
    """Grafana keeps one of two panels with the same id, and lays overlapping ones out anew."""
    panels = rendered_panels(page)
    assert len({panel["id"] for panel in panels}) == len(panels)
    for one, other in combinations((panel["gridPos"] for panel in panels), 2):
        apart = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert apart or above
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels)


@pytest.mark.parametrize("page", PAGES)
def test_variables_that_are_used_can_be_chosen(page):
    """No query is left with a variable that is not set."""
    text = json.dumps(rendered_panels(page))
    chosen = {each["name"] for each in document(page)["templating"]["list"]}
    used = {one or other for one, other in re.findall(r"\$\{(\w+)(?::\w+)?\}|\$([a-z]\w*)", text)}
    assert {name for name in used if not name.startswith("__")} <= chosen


def test_dashboards_lead_to_each_other():
    """Every link, atop a page and in a cell, opens a dashboard that there is, with a variable it has."""
    known = {page.uid: {each.name for each in page.variables} for page in DASHBOARDS}
    for page in DASHBOARDS:
        assert len(page.links) == len(DASHBOARDS) - 1
        text = json.dumps(document(page))
        for uid, variable in re.findall(r"/d/([\w-]+)(?:\?var-(\w+)=)?", text):
            assert uid in known
            assert not variable or variable in known[uid], (page.uid, uid, variable)
    assert set(others("").values()) == {f"/d/{uid}" for uid in known}


def test_every_file_of_sql_is_used_once_it_is_there():
    """A query that no panel asks any more is removed."""
    queries = [query for page in DASHBOARDS for panel in page.panels for query in panel.queries]
    queries += [variable.query for page in DASHBOARDS for variable in page.variables]
    used = {query.file for query in queries if isinstance(query, Sql)}
    assert {path.stem for path in SQL.glob("*.sql")} == used


def test_what_provisioning_names_is_what_compose_mounts():
    """The folder of dashboards, the reader's secret, the servers' names and the kinds of sources."""
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    grafana = services["grafana"]
    mounted = {each.split(":")[0]: each.split(":")[1] for each in grafana["volumes"]}
    folder = ROOT / "grafana" / "provisioning"
    [provider] = yaml.safe_load((folder / "dashboards" / "scoreline.yml").read_text())["providers"]
    assert provider["options"]["path"] == mounted["./grafana/dashboards"]
    sources = yaml.safe_load((folder / "datasources" / "scoreline.yml").read_text())["datasources"]
    kinds = {each["query"] for each in document(DASHBOARDS[0])["templating"]["list"][:2]}
    assert {source["type"] for source in sources} == kinds
    by_type = {source["type"]: source for source in sources}
    postgres = by_type["grafana-postgresql-datasource"]
    secret = re.fullmatch(r"\$__file\{/run/secrets/(\w+)\}", postgres["secureJsonData"]["password"])
    assert secret
    assert secret[1] in grafana["secrets"]
    assert postgres["url"].partition(":")[0] in services
    assert by_type["prometheus"]["url"] == "http://prometheus:9090"
    shared = set(services["postgres"]["networks"]) & set(grafana["networks"])
    assert shared, "Grafana can't reach Postgres"
