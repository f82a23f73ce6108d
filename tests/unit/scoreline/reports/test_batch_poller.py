"""The poller of a batch that is watched."""

from datetime import timedelta

from scoreline.reports.batch_poller import BatchPoller
from scoreline.reports.batch_view import BatchView
from tests.unit.scoreline.reports.snapshots import NOW, abandoned


class Scripted(BatchPoller):
    """A poller that reads the given views."""

    def __init__(self, views: list[BatchView]) -> None:
        self.views = iter(views)
        self._conn, self._abandoned = None, None

    async def pause(self, _: float) -> None:
        """Return at once."""

    async def read(self) -> BatchView:
        return next(self.views)


async def test_watching_ends_when_its_local_run_is_gone() -> None:
    """Polling stops 15 s after the run was first read as gone; a new run restarts the count."""
    at = [(0, "r"), (14, "r"), (16, "s"), (30, "s"), (31, "s")]
    views = [abandoned(run_id=run_id, now=NOW + timedelta(seconds=second)) for second, run_id in at]
    last = await Scripted(views).until_over(lambda _: None)
    assert last is views[-1]
