"""`scoreline observe`: what must be installed, and what is asked of each dashboard."""

import shutil
from collections.abc import Mapping
from typing import Any, cast

import pytest

from eventlog.clock import utc_now
from grafana.catalogue import DASHBOARDS
from grafana.model import Dashboard
from scoreline.command_error import CommandError
from scoreline.local.observe import run
from scoreline.local.observe.run import look, run_observe


@pytest.mark.parametrize(
    ("missing", "text"),
    [("which", "prometheus"), ("find_spec", "the workload calls a provider's SDK: pip install")],
)
def test_what_is_missing_is_named_before_anything_starts(
    missing: str, text: str, monkeypatch: pytest.MonkeyPatch
):
    """Prometheus, or the packages of the workload."""
    monkeypatch.setattr(shutil, "which", lambda _: None if missing == "which" else "/bin/prometheus")
    monkeypatch.setattr(run, "check_installed", lambda: None)
    monkeypatch.setattr(run, "find_spec", lambda _: None)
    monkeypatch.setattr(run, "load_settings", lambda: pytest.fail("started"))
    with pytest.raises(CommandError, match=text):
        run_observe(as_json=True, keep=False)


async def test_variables_that_take_several_values_take_all(monkeypatch: pytest.MonkeyPatch):
    """Any other variable has the value of the workload."""
    asked: dict[str, Mapping[str, str]] = {}

    class Reader:
        def __init__(self, *_: object) -> None:
            pass

        async def dashboard(self, page: Dashboard, values: Mapping[str, str]) -> list[Any]:
            asked[page.title] = values
            return []

    monkeypatch.setattr(run, "PanelReader", Reader)
    given = {"batch": "b-1", "evaluation": "b-1.7"}
    found = await look(cast("Any", None), cast("Any", None), given, since=utc_now())
    assert list(found) == [page.title for page in DASHBOARDS]
    for page in DASHBOARDS:
        several = {each.name for each in page.variables if each.many}
        assert asked[page.title] == {**given, **dict.fromkeys(several, ".*")}
    assert {values["batch"] for values in asked.values()} == {"b-1", ".*"}
