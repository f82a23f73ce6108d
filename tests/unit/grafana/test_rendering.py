"""Rendered dashboards: ids, positions, variables and links."""

import json
import re
from itertools import combinations
from typing import Any

import pytest

from grafana.catalogue import DASHBOARDS
from grafana.pages.addresses import others
from grafana.rendering import document

PAGES = [pytest.param(page, id=page.uid) for page in DASHBOARDS]


def rendered_panels(page: Any) -> list[dict[str, Any]]:
    return list(document(page)["panels"])


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
