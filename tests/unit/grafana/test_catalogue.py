"""The dashboards as they are checked in: whole, true to the contract of metrics, and fit for Grafana."""

import re

import yaml

from grafana.catalogue import DASHBOARDS, FOLDER, files
from grafana.model import SQL, Sql
from grafana.rendering import document
from tests.unit.grafana.panel_texts import ROOT

"""Kinds of panels whose numbers have their units by column."""


"""Those of the processes, and what Prometheus records by our rules."""


def test_what_is_checked_in_is_what_is_generated():
    """`make dashboards` would change nothing."""
    assert {path: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")} == files()


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
