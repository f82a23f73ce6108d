"""`scoreline replay --batch --rebuild` refuses a log that breaks a rule."""

from tests.builders import BATCH
from tests.integration.scoreline.reports.audit.audited import replay
from tests.integration.worker import Site


async def test_rebuild_rejects_a_log_that_breaks_a_rule(here: Site) -> None:
    """The command exits with 1 and names the evaluation."""
    await here.conn.execute(
        "UPDATE events SET verdict = 'stale' WHERE evaluation_id = 'done-1' AND sequence = 5"
    )
    code, _, problem = replay(here, "--batch", BATCH, "--rebuild")
    assert (code, "The log of done-1 breaks a rule" in problem) == (1, True)
