"""Provider batches of a batch, and the evaluations that wait for them."""

from projections.ledger.provider_batches import RequestCounts
from projections.queries.provider_batches import ProviderBacklog, provider_backlog, provider_batches_of
from tests.integration.scoreline.batch_harness import Harness

INSERT = (
    "INSERT INTO provider_batches (id, batch_id, target, provider_id, state, members, attempts, bytes,"
    " digest, intended_at, claimed_at, succeeded, expired)"
    " VALUES (%s, 'nightly', 0, %s, 'submitted', '{1,2,3}', '{1,1,1}', 9, '', now() + %s * interval '1 s',"
    " now(), 2, 1)"
)


async def test_provider_batches_are_listed_oldest_first_with_their_counts(here: Harness) -> None:
    """Counts have the provider's five states; those of other batches are not listed."""
    for name, provider_id, at in (("second", None, 2), ("first", "msgbatch_1", 1)):
        await here.place.conn.execute(INSERT, [name, provider_id, at])
    first, second = await provider_batches_of(here.place.conn, "nightly")
    assert (first.id, first.provider_id, first.size) == ("first", "msgbatch_1", 3)
    assert first.counts == RequestCounts(succeeded=2, expired=1)
    assert (second.id, second.provider_id, second.ended_at) == ("second", None, None)
    assert await provider_batches_of(here.place.conn, "other") == []


async def test_the_backlog_has_what_waits_and_what_is_unsent(here: Harness) -> None:
    """Evaluations of executors and ended ones do not wait for a provider."""
    await here.submit("nightly", ["queued", "queued", "queued", "passed"])
    for number, asked_in in {1: "", 2: "first", 4: ""}.items():
        key = f"nightly.0000000{number}"
        await here.place.alter(
            "UPDATE evaluations SET asked_in = %s WHERE evaluation_id = %s", asked_in, key
        )
    assert await provider_backlog(here.place.conn, "nightly") == ProviderBacklog(waiting=2, unsent=1)
    assert await provider_backlog(here.place.conn, "other") == ProviderBacklog()
