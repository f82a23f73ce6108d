"""The contract of the repository of provider batches, on memory and on Postgres."""

from dataclasses import replace
from datetime import timedelta

from eventlog import payloads as p
from eventlog.codec import make_event
from eventlog.events import Event
from projections.ledger.contract import AttemptOpening
from projections.ledger.memory import MemoryLedger
from projections.ledger.postgres import PostgresLedger
from projections.ledger.provider_batches import (
    ProviderBatch,
    ProviderBatchRepository,
    ProviderBatchState,
    RequestCounts,
)
from projections.ledger.provider_batches_memory import MemoryProviderBatchRepository
from projections.ledger.provider_batches_postgres import PostgresProviderBatchRepository
from tests.builders import CASE
from tests.conformance.projections.ledger.ledger_forms import (
    EPOCHS,
    LATER,
    NOW,
    B,
    LedgerForm,
    accept,
    accepted,
    batch_of,
    key,
    open_next,
    state_of,
)

PROVIDER_BATCH = ProviderBatch("0123456789abcdef", B, 0, (1, 2), (1, 1), 99, "digest", NOW, NOW)
SCORING = p.Queued(case=CASE, reason=p.OpeningReason.SCORING)
CANCELLED = p.Cancelled(by="operator")
PAID = p.Responded(output="4", cost_usd=0.5)
MINUTE = timedelta(minutes=1)


def open_repository(form: LedgerForm) -> ProviderBatchRepository:
    """Open the repository that belongs to a ledger."""
    match form.ledger:
        case MemoryLedger() as ledger:
            return MemoryProviderBatchRepository(ledger)
        case PostgresLedger() as ledger:
            return PostgresProviderBatchRepository(ledger._pool)
        case other:
            raise TypeError(other)


def fact(payload: p.AnyPayload, attempt: int, sequence: int) -> Event:
    """Make one event of the first evaluation."""
    return make_event(
        payload,
        evaluation_id=key(1),
        batch_id=B,
        attempt=attempt,
        sequence=sequence,
        occurred_at=NOW,
        source="coordinator",
    )


async def three_waiting(form: LedgerForm) -> ProviderBatchRepository:
    """Accept four evaluations: the first three wait for a provider batch, the last is published."""
    await accept(form, *map(accepted, (1, 2, 3, 4)))
    batch = await batch_of(form)
    asked = [key(1), key(2), key(3)]
    assert await form.ledger.open_window(batch, last_id=key(4), size=1, epochs=EPOCHS, by_provider=asked)
    return open_repository(form)


async def waiting(
    form: LedgerForm, repository: ProviderBatchRepository, *, targets: int = 1, target: int = 0
) -> list[int]:
    """List the evaluations that no provider batch has yet."""
    wanted = {"targets": targets, "target": target, "limit": 9}
    found = await repository.list_unassigned(await batch_of(form), after="", **wanted)
    return [int(one.evaluation_id[-1]) for one in found]


async def intended(
    form: LedgerForm, provider_batch: ProviderBatch = PROVIDER_BATCH
) -> ProviderBatchRepository:
    """Record the intent to submit a provider batch."""
    repository = await three_waiting(form)
    assert await repository.record_intent(
        provider_batch, [key(number) for number in provider_batch.members]
    )
    return repository


async def test_evaluations_for_a_provider_batch_are_not_published(ledgers):
    """They take no place in a window, and are not listed as evaluations without progress."""
    provider = await three_waiting(ledgers)
    assert await waiting(ledgers, provider) == [1, 2, 3]
    assert [(await state_of(ledgers, n)).epoch != "" for n in (1, 2, 3, 4)] == [False, False, False, True]
    assert (await batch_of(ledgers)).in_flight == 1
    await ledgers.wait(100)
    found = await ledgers.ledger.unmoved(
        await batch_of(ledgers),
        after="",
        unchanged_for=timedelta(seconds=1),
        hung_after=MINUTE,
        live=[],
        queued=True,
        limit=9,
    )
    assert [one.row.evaluation_id for one in found] == [key(4)]


async def test_unassigned_evaluations_are_listed_by_target(ledgers):
    """The position of a variant determines its target."""
    provider = await three_waiting(ledgers)
    assert await waiting(ledgers, provider, targets=2, target=0) == [1, 2, 3]
    assert await waiting(ledgers, provider, targets=2, target=1) == []


async def test_a_provider_batch_is_recorded_with_its_members(ledgers):
    """They are members of no other, and are listed as pending."""
    provider = await intended(ledgers)
    assert await waiting(ledgers, provider) == [3]
    assert await provider.list_open() == [PROVIDER_BATCH]
    members = await provider.list_pending(PROVIDER_BATCH, after="", limit=9)
    assert [one.evaluation_id for one in members] == [key(1), key(2)]
    assert members[0].opening.attempt == 1
    assert [
        one.evaluation_id for one in await provider.list_pending(PROVIDER_BATCH, after=key(1), limit=9)
    ] == [key(2)]
    assert await provider.filter_pending(PROVIDER_BATCH, [key(2), key(3)]) == {key(2)}


async def test_an_evaluation_is_in_one_provider_batch_at_most(ledgers):
    """A second intent with the same member changes nothing."""
    provider = await intended(ledgers)
    again = replace(PROVIDER_BATCH, id="fedcba9876543210", members=(2, 3))
    assert not await provider.record_intent(again, [key(2), key(3)])
    assert await waiting(ledgers, provider) == [3]
    assert len(await provider.list_open()) == 1


async def test_no_intent_is_recorded_for_an_inactive_batch(ledgers):
    """Nothing is submitted for a paused batch."""
    provider = await three_waiting(ledgers)
    assert await ledgers.ledger.request_state(B, "paused", by="ada")
    assert not await provider.record_intent(PROVIDER_BATCH, [key(1), key(2)])
    assert await provider.list_open() == []


async def test_only_one_coordinator_can_resubmit(ledgers):
    """The claim is a compare-and-set."""
    provider = await intended(ledgers)
    claimed = await provider.claim(PROVIDER_BATCH, now=NOW + MINUTE)
    assert claimed == replace(PROVIDER_BATCH, claimed_at=NOW + MINUTE)
    assert await provider.claim(PROVIDER_BATCH, now=NOW + MINUTE) is None
    assert await provider.list_open() == [claimed]


async def test_a_submission_is_recorded_once(ledgers):
    """The provider's id is stored, and a second one is refused."""
    provider = await intended(ledgers)
    assert await provider.record_submission(PROVIDER_BATCH, "msgbatch_1", now=NOW)
    assert not await provider.record_submission(PROVIDER_BATCH, "msgbatch_2", now=NOW)
    [provider_batch] = await provider.list_open()
    assert (provider_batch.state, provider_batch.provider_id, provider_batch.submitted_at) == (
        "submitted",
        "msgbatch_1",
        NOW,
    )
    assert await provider.filter_known(["msgbatch_1", "msgbatch_2"]) == {"msgbatch_1"}
    assert await provider.claim(provider_batch, now=NOW) is None


async def test_a_provider_batch_passes_through_its_states(ledgers):
    """It is polled, annotated, cancelled, ended and closed."""
    provider = await intended(ledgers)
    await provider.record_submission(PROVIDER_BATCH, "msgbatch_1", now=NOW)
    await provider.record_note(PROVIDER_BATCH, "it has to wait")
    await provider.record_cancel_request(PROVIDER_BATCH)
    [provider_batch] = await provider.list_open()
    assert (provider_batch.note, provider_batch.called_off) == ("it has to wait", True)
    await provider.record_counts(PROVIDER_BATCH, RequestCounts(processing=2), now=NOW, ended=False)
    await provider.record_counts(PROVIDER_BATCH, RequestCounts(succeeded=1, expired=1), now=NOW, ended=True)
    [provider_batch] = await provider.list_open()
    assert (provider_batch.state, provider_batch.note) == ("ended", "")
    await provider.close(PROVIDER_BATCH, ProviderBatchState.COLLECTED, now=NOW)
    assert await provider.list_open() == []


async def test_members_of_an_abandoned_provider_batch_wait_for_another(ledgers):
    """An abandoned provider batch was never created at the provider."""
    provider = await intended(ledgers)
    await provider.close(PROVIDER_BATCH, ProviderBatchState.ABANDONED, now=NOW)
    assert await waiting(ledgers, provider) == [1, 2, 3]


async def test_an_answer_removes_an_evaluation_from_its_provider_batch(ledgers):
    """Its next attempt is published, and counts as running."""
    provider = await intended(ledgers)
    await open_next(ledgers, 1, SCORING)
    assert await provider.filter_pending(PROVIDER_BATCH, [key(1), key(2)]) == {key(2)}
    assert (await batch_of(ledgers)).in_flight == 2
    assert (await state_of(ledgers, 1)).epoch == "01-1"


async def test_a_retried_evaluation_waits_for_another_provider_batch(ledgers):
    """Its next attempt is not published."""
    provider = await intended(ledgers)

    again = AttemptOpening([fact(SCORING, 2, 0)], "", by_provider=True)
    [opened] = await ledgers.ledger.open_attempts([key(1)], lambda *_: again)
    assert opened.epoch == ""
    assert await waiting(ledgers, provider) == [1, 3]
    assert (await batch_of(ledgers)).in_flight == 1


async def test_an_unpublished_attempt_is_closed_with_the_next(ledgers):
    """All its events are stored; only the newest attempt is returned to be published."""
    await intended(ledgers)
    claim = p.Provisioning(executor="coordinator", nonce="1")
    carried_on: list[p.AnyPayload] = [claim, p.Running(target="claude"), PAID]
    events = [*(fact(each, 1, place) for place, each in enumerate(carried_on, 1)), fact(SCORING, 2, 0)]
    [opened] = await ledgers.ledger.open_attempts([key(1)], lambda *_: AttemptOpening(events, "01-1"))
    assert [event.key for event, _ in opened.events] == [(2, 0)]
    [one] = await ledgers.ledger.evaluation_states([key(1)])
    logged = await ledgers.ledger.stored([one.row])
    assert sorted(logged[key(1)]) == [(1, 0), (1, 1), (1, 2), (1, 3), (2, 0)]
    assert float((await batch_of(ledgers)).progress.cost_usd) == 0.5
    assert (await ledgers.total()).retried == 0


async def test_a_paid_late_answer_is_stored_without_effect(ledgers):
    """An answer after the end is counted once, however often it is collected."""
    await intended(ledgers)
    await open_next(ledgers, 1, CANCELLED)
    late = AttemptOpening([fact(PAID, 1, 1)], "01-1")
    for _ in range(2):
        assert await ledgers.ledger.open_attempts([key(1)], lambda *_: late) == []
    assert (await state_of(ledgers, 1)).row.cursor[:2] == (2, 0)
    assert float((await batch_of(ledgers)).progress.cost_usd) == 0.5


async def test_unassigned_evaluations_can_be_published_after_all(ledgers):
    """They count as running; members of a provider batch stay unpublished."""
    provider = await intended(ledgers)
    released = await provider.release(await batch_of(ledgers), epochs=LATER, limit=9)
    assert [one.evaluation_id for one in released] == [key(3)]
    assert released[0].events[0][0].attempt == 1
    assert (await state_of(ledgers, 3)).epoch in LATER
    assert (await batch_of(ledgers)).in_flight == 2
    assert await provider.release(await batch_of(ledgers), epochs=LATER, limit=9) == []


async def test_the_spec_of_an_active_batch_can_be_changed(ledgers):
    """The change is recorded with its author."""
    provider = await three_waiting(ledgers)
    assert not await provider.has_groups(B)
    assert await provider.update_spec(B, b'{"name":"other"}', by="ada", reason="provider batches")
    assert (await batch_of(ledgers)).spec == b'{"name":"other"}'
    assert ("changed", "ada", "provider batches") in await ledgers.operations(B)
    assert not await provider.update_spec("unknown", b"{}", by="ada", reason="")
