"""The history of an evaluation, attempt by attempt."""

from eventlog import payloads as p
from scoreline.reports.replay.history import NOT_QUERIED, EvaluationHistory, SourceStatus
from tests.builders import event, history
from tests.replaying import Scene


async def retried() -> EvaluationHistory:
    """Return a history whose second attempt has an open gap."""
    scene = Scene()
    scene.arrive(*history("queued provisioning retrying"))
    again = history("queued:retry provisioning running responded", attempt=2)
    scene.arrive(again[0], again[3])
    await scene.store()
    return scene.replayed()


async def test_one_attempt_has_only_its_entries_and_its_gap():
    """The gap belongs to the second attempt."""
    whole = await retried()
    first, second = whole.only(1), whole.only(2)
    assert ({line.event.attempt for line in first.lines}, first.gap) == ({1}, None)
    assert second.gap == whole.gap is not None
    assert [attempt.gap is None for attempt in whole.attempts] == [True, False]


async def test_the_reason_of_an_attempt_is_that_of_its_opening():
    """An attempt opened by a cancellation has its type; one without its opening has none."""
    scene = Scene()
    scene.arrive(event("queued"), event("cancelled", attempt=2), event("running", attempt=3, sequence=2))
    reasons = {attempt.number: attempt.reason for attempt in scene.replayed().attempts}
    assert reasons == {1: "submitted", 2: "cancelled", 3: None}


async def test_the_owner_of_an_attempt_is_the_executor_whose_claim_was_applied():
    """A conflicting claim with the same key is not accepted."""
    scene = Scene()
    scene.arrive(*history("queued provisioning"))
    scene.arrive(event(p.Provisioning(executor="executor-2", nonce="n"), sequence=1))
    await scene.store()
    [attempt] = scene.replayed().attempts
    assert attempt.owner == "executor-1"
    assert [line.disposition for line in attempt.lines[1:]] == ["applied", "conflict"]


async def test_a_history_is_stored_once_no_entry_is_pending():
    """One entry of the stream that Postgres lacks is enough."""
    scene = Scene()
    scene.arrive(event("queued"))
    await scene.store()
    assert scene.replayed().is_stored
    scene.arrive(event("provisioning", sequence=1))
    assert not scene.replayed().is_stored


def test_a_source_that_was_not_queried_or_has_a_problem_has_not_answered():
    """Only then does nothing found mean that it has nothing."""
    assert SourceStatus(queried=True).answered
    assert not NOT_QUERIED.answered
    assert not SourceStatus(queried=True, problem="does not answer").answered
