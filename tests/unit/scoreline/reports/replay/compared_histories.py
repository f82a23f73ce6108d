"""Histories for tests of comparisons."""

from eventlog import payloads as p
from scoreline.reports.replay.history import EvaluationHistory
from tests.builders import event
from tests.replaying import Scene


async def stored_history(*events: p.AnyPayload | str, evaluation_id: str = "one") -> EvaluationHistory:
    """Return the history of an evaluation with one attempt, all of it stored."""
    scene = Scene(evaluation_id=evaluation_id)
    scene.arrive(*(event(data, evaluation_id=evaluation_id, sequence=n) for n, data in enumerate(events)))
    await scene.store()
    return scene.replayed()
