"""The batch that an audit names."""

from tests.builders import BATCH
from tests.integration.scoreline.reports.audit.audited import replay
from tests.integration.worker import Site


async def test_an_unknown_batch_is_reported_with_the_nearest_ids(here: Site) -> None:
    """A typo in a batch id is reported with the nearest id."""
    code, _, problem = replay(here, "--batch", "bach-1", "--verify")
    assert (code, problem) == (1, f"error: There is no batch bach-1. Nearest: {BATCH}\n")
