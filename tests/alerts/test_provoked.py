"""Alerts on a real fleet, a real Prometheus and a real Alertmanager, with a minute made a second."""

from pathlib import Path

import pytest

from tests.alerts.monitoring_stack import missing
from tests.alerts.scenario import provoke_all, working_fleet

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=f"not installed: {missing()}"),
    pytest.mark.timeout(300),
]
PROVOKED = {
    "WorkerDown", "WorkerStalled", "DLQGrowing", "BreakerOpen", "AllWorkersDown", "RedisDown",
    "CoordinatorDown", "StorageDown",
}  # fmt: skip


async def test_alerts_reach_the_receiver_of_their_severity_and_are_resolved(
    tmp_path: Path, postgres_url: str
):
    """Each fault fires its alert; undoing the fault resolves it; info alerts reach no receiver."""
    async with working_fleet(tmp_path, postgres_url) as scenario:
        timings = await provoke_all(scenario)
        notifications = scenario.monitoring.receiver.notifications
    assert {each.alert for each in timings} == PROVOKED
    stalled = next(each for each in notifications if each.alert == "WorkerStalled")
    assert stalled.labels["job"] == "executor"
    down = [each.labels for each in notifications if each.alert == "WorkerDown"]
    assert ("executor", "worker-1") in {(each["job"], each["worker_id"]) for each in down}
    assert {each.receiver for each in notifications if each.labels["severity"] == "warning"} == {"chat"}
    assert [each for each in notifications if each.labels["severity"] == "info"] == []
