"""Alerts on a real fleet, a real Prometheus and a real Alertmanager, with a minute made a second."""

from pathlib import Path

import pytest

from tests.alerts.provoking import Measured, course, provoke_all
from tests.alerts.watchers import Told, missing

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=f"not installed here: {missing()}"),
    pytest.mark.timeout(480),
]
MADE = {
    "WorkerDown", "WorkerStalled", "DLQGrowing", "BreakerOpen", "AllWorkersDown", "RedisDown",
    "CoordinatorDown", "StorageDown",
}  # fmt: skip


async def provoked(home: Path, postgres_url: str) -> tuple[list[Measured], list[Told]]:
    """Make all troubles once."""
    async with course(home, postgres_url) as here:
        return await provoke_all(here), here.watchers.receiver.notes


async def test_troubles_reach_whom_they_concern_and_so_does_their_end(
    tmp_path_factory: pytest.TempPathFactory, postgres_url: str
):
    """Each is told to the receiver of its severity, and told again when it is over."""
    try:
        measured, notes = await provoked(tmp_path_factory.mktemp("first"), postgres_url)
    except pytest.fail.Exception:
        # A minute is a second here: whoever was too busy for some seconds has slept through minutes.
        measured, notes = await provoked(tmp_path_factory.mktemp("second"), postgres_url)
    assert {each.alert for each in measured} == MADE
    stalled = next(note for note in notes if note.alert == "WorkerStalled")
    lost = next(
        note for note in notes if note.alert == "WorkerDown" and note.labels["worker_id"] == "worker-1"
    )
    assert (stalled.labels["job"], lost.labels["job"]) == ("executor", "executor")
    assert {note.receiver for note in notes if note.labels["severity"] == "warning"} == {"chat"}
    assert [note for note in notes if note.labels["severity"] == "info"] == []
