"""The result of an attempt."""

from scoreline.reports.replay.attempt_result import result
from tests.unit.scoreline.reports.replay.compared_histories import stored_history


async def test_the_result_of_a_retried_attempt_has_its_answer():
    """Tokens and output of a recorded answer count, though the attempt has no verdict."""
    replayed = await stored_history("queued", "provisioning", "running", "responded", "retrying")
    came_to = result(replayed)
    assert (came_to.tokens, came_to.output, came_to.verdict) == (8, "4", None)
    assert came_to.error is not None
    assert came_to.error.startswith("transient: the model looked away")
