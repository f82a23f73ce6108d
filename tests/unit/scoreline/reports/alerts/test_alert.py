"""An alert as it is reported."""

from scoreline.reports.alerts.alert import postgres_down
from tests.builders import START
from tests.unit.scoreline.reports.alerts.views import at, firing


def test_no_alert_fires_for_a_batch_that_makes_progress():
    """A running, a paused and a finished batch fire nothing, whatever their counters are."""
    assert firing(at(0), at(60, completed=50)) == []
    assert firing(at(0), at(9999, state="paused", failed=500, beats={})) == []
    assert firing(at(0), at(9999, finished_at=START, failed=1000, beats={})) == []


def test_an_unreachable_database_is_an_alert_without_a_view():
    """The alert is built without a view, since none can be read."""
    alert = postgres_down()
    assert alert.message.startswith("PostgreSQL is unreachable: ")
    assert (alert.action, alert.value, alert.threshold) == ("scoreline batch list", 0, 1)
