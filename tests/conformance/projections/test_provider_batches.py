"""The contract of the books on provider batches; the memory form and Postgres keep it alike."""

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
from tests.conformance.projections.ledger_forms import (
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
    standing,
)

CHUNK = ProviderBatch("0123456789abcdef", B, 0, (1, 2), (1, 1), 99, "digest", NOW, NOW)
SCORING = p.Queued(case=CASE, reason=p.OpeningReason.SCORING)
CANCELLED = p.Cancelled(by="operator")
PAID = p.Responded(output="4", cost_usd=0.5)
MINUTE = timedelta(minutes=1)


def provider_books(form: LedgerForm) -> ProviderBatchRepository:
    """Open the books beside a ledger."""
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
    """Accept four, of which the first three wait for a provider, and the last is published."""
    await accept(form, *map(accepted, (1, 2, 3, 4)))
    batch = await batch_of(form)
    asked = [key(1), key(2), key(3)]
    assert await form.ledger.open_window(batch, last_id=key(4), size=1, epochs=EPOCHS, asked=asked)
    return provider_books(form)


async def waiting(
    form: LedgerForm, books: ProviderBatchRepository, *, targets: int = 1, target: int = 0
) -> list[int]:
    """Name those that are to be asked."""
    wanted = {"targets": targets, "target": target, "limit": 9}
    found = await books.list_unassigned(await batch_of(form), after="", **wanted)
    return [int(one.evaluation_id[-1]) for one in found]


async def intended(form: LedgerForm, provider_batch: ProviderBatch = CHUNK) -> ProviderBatchRepository:
    """Write a provider batch down."""
    books = await three_waiting(form)
    assert await books.record_intent(provider_batch, [key(number) for number in provider_batch.members])
    return books


async def test_nobody_is_told_of_those_that_wait_for_a_provider(books):
    """They fill no window, and nobody wonders that they do not move."""
    provider = await three_waiting(books)
    assert await waiting(books, provider) == [1, 2, 3]
    assert [(await standing(books, n)).epoch != "" for n in (1, 2, 3, 4)] == [False, False, False, True]
    assert (await batch_of(books)).in_flight == 1
    await books.wait(100)
    found = await books.ledger.unmoved(
        await batch_of(books),
        after="",
        unchanged_for=timedelta(seconds=1),
        hung_after=MINUTE,
        live=[],
        queued=True,
        limit=9,
    )
    assert [one.row.evaluation_id for one in found] == [key(4)]


async def test_those_that_wait_are_listed_by_their_target(books):
    """A variant's place says which of the targets it asks."""
    provider = await three_waiting(books)
    assert await waiting(books, provider, targets=2, target=0) == [1, 2, 3]
    assert await waiting(books, provider, targets=2, target=1) == []


async def test_a_chunk_is_written_down_with_its_members(books):
    """They are in no other, and are listed as its own."""
    provider = await intended(books)
    assert await waiting(books, provider) == [3]
    assert await provider.list_open() == [CHUNK]
    members = await provider.list_pending(CHUNK, after="", limit=9)
    assert [one.evaluation_id for one in members] == [key(1), key(2)]
    assert members[0].opening.attempt == 1
    assert [one.evaluation_id for one in await provider.list_pending(CHUNK, after=key(1), limit=9)] == [
        key(2)
    ]
    assert await provider.filter_pending(CHUNK, [key(2), key(3)]) == {key(2)}


async def test_nobody_is_in_two_chunks(books):
    """Whoever comes second changes nothing."""
    provider = await intended(books)
    again = replace(CHUNK, id="fedcba9876543210", members=(2, 3))
    assert not await provider.record_intent(again, [key(2), key(3)])
    assert await waiting(books, provider) == [3]
    assert len(await provider.list_open()) == 1


async def test_nothing_is_intended_in_a_batch_that_does_not_go_on(books):
    """A pause means that nothing more is submitted."""
    provider = await three_waiting(books)
    assert await books.ledger.request_state(B, "paused", by="ada")
    assert not await provider.record_intent(CHUNK, [key(1), key(2)])
    assert await provider.list_open() == []


async def test_only_one_may_submit_again(books):
    """The right is compared and set."""
    provider = await intended(books)
    claimed = await provider.claim(CHUNK, now=NOW + MINUTE)
    assert claimed == replace(CHUNK, claimed_at=NOW + MINUTE)
    assert await provider.claim(CHUNK, now=NOW + MINUTE) is None
    assert await provider.list_open() == [claimed]


async def test_a_submission_is_recorded_once(books):
    """What the provider calls it stays, and is known."""
    provider = await intended(books)
    assert await provider.record_submission(CHUNK, "msgbatch_1", now=NOW)
    assert not await provider.record_submission(CHUNK, "msgbatch_2", now=NOW)
    [provider_batch] = await provider.list_open()
    assert (provider_batch.state, provider_batch.provider_id, provider_batch.submitted_at) == (
        "submitted",
        "msgbatch_1",
        NOW,
    )
    assert await provider.filter_known(["msgbatch_1", "msgbatch_2"]) == {"msgbatch_1"}
    assert await provider.claim(provider_batch, now=NOW) is None


async def test_a_chunk_comes_to_its_end(books):
    """Looked at, noted, called off, ended, closed."""
    provider = await intended(books)
    await provider.record_submission(CHUNK, "msgbatch_1", now=NOW)
    await provider.record_note(CHUNK, "it has to wait")
    await provider.record_cancel_request(CHUNK)
    [provider_batch] = await provider.list_open()
    assert (provider_batch.note, provider_batch.called_off) == ("it has to wait", True)
    await provider.record_counts(CHUNK, RequestCounts(processing=2), now=NOW, ended=False)
    await provider.record_counts(CHUNK, RequestCounts(succeeded=1, expired=1), now=NOW, ended=True)
    [provider_batch] = await provider.list_open()
    assert (provider_batch.state, provider_batch.note) == ("ended", "")
    await provider.close(CHUNK, ProviderBatchState.COLLECTED, now=NOW)
    assert await provider.list_open() == []


async def test_those_of_an_abandoned_chunk_wait_for_another(books):
    """It was never created."""
    provider = await intended(books)
    await provider.close(CHUNK, ProviderBatchState.ABANDONED, now=NOW)
    assert await waiting(books, provider) == [1, 2, 3]


async def test_an_answer_takes_an_evaluation_out_of_its_chunk(books):
    """Its next attempt is published, and counts as under way."""
    provider = await intended(books)
    await open_next(books, 1, SCORING)
    assert await provider.filter_pending(CHUNK, [key(1), key(2)]) == {key(2)}
    assert (await batch_of(books)).in_flight == 2
    assert (await standing(books, 1)).epoch == "01-1"


async def test_one_that_asks_again_waits_for_another_chunk(books):
    """Nobody is told of its next attempt."""
    provider = await intended(books)

    again = AttemptOpening([fact(SCORING, 2, 0)], "", asks=True)
    [opened] = await books.ledger.open_attempts([key(1)], lambda *_: again)
    assert opened.epoch == ""
    assert await waiting(books, provider) == [1, 3]
    assert (await batch_of(books)).in_flight == 1


async def test_an_attempt_that_nobody_was_told_of_is_closed_with_the_next(books):
    """All of it is on record; only the newest attempt is handed on to be published."""
    await intended(books)
    claim = p.Provisioning(executor="coordinator", nonce="1")
    carried_on: list[p.AnyPayload] = [claim, p.Running(target="claude"), PAID]
    events = [*(fact(each, 1, place) for place, each in enumerate(carried_on, 1)), fact(SCORING, 2, 0)]
    [opened] = await books.ledger.open_attempts([key(1)], lambda *_: AttemptOpening(events, "01-1"))
    assert [event.key for event, _ in opened.events] == [(2, 0)]
    [one] = await books.ledger.standings([key(1)])
    logged = await books.ledger.stored([one.row])
    assert sorted(logged[key(1)]) == [(1, 0), (1, 1), (1, 2), (1, 3), (2, 0)]
    assert float((await batch_of(books)).spent_usd) == 0.5
    assert (await books.total()).retried == 0


async def test_what_was_paid_for_in_vain_is_kept_and_moves_nothing(books):
    """An answer that came after the end is counted once, however often it is brought."""
    await intended(books)
    await open_next(books, 1, CANCELLED)
    late = AttemptOpening([fact(PAID, 1, 1)], "01-1")
    for _ in range(2):
        assert await books.ledger.open_attempts([key(1)], lambda *_: late) == []
    assert (await standing(books, 1)).row.cursor[:2] == (2, 0)
    assert float((await batch_of(books)).spent_usd) == 0.5


async def test_those_that_wait_can_be_told_of_after_all(books):
    """As published now, and counted as under way; those in a provider batch stay."""
    provider = await intended(books)
    released = await provider.release(await batch_of(books), epochs=LATER, limit=9)
    assert [one.evaluation_id for one in released] == [key(3)]
    assert released[0].events[0][0].attempt == 1
    assert (await standing(books, 3)).epoch in LATER
    assert (await batch_of(books)).in_flight == 2
    assert await provider.release(await batch_of(books), epochs=LATER, limit=9) == []


async def test_what_a_batch_is_about_can_be_changed_while_it_goes_on(books):
    """Who asked for it is on record."""
    provider = await three_waiting(books)
    assert not await provider.has_groups(B)
    assert await provider.update_spec(B, b'{"name":"other"}', by="ada", reason="provider batches")
    assert (await batch_of(books)).spec == b'{"name":"other"}'
    assert ("changed", "ada", "provider batches") in await books.asked(B)
    assert not await provider.update_spec("nobody", b"{}", by="ada", reason="")
