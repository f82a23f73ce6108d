"""Message Batches, as the official Anthropic SDK sees them."""

from typing import Any

import pytest

from tests.extras import require
from tests.integration.scoreline.provider_sim.test_anthropic_messages import ASK, asking, sdk
from tests.waiting import until

require("anthropic")


def requests(number: int, **change: Any) -> list[dict[str, Any]]:
    return [
        {
            "custom_id": f"case-{i}",
            "params": {**ASK, "messages": [{"role": "user", "content": f"Q{i}"}], **change},
        }
        for i in range(number)
    ]


async def results(client: Any, name: str) -> dict[str, Any]:
    return {each.custom_id: each.result async for each in await client.messages.batches.results(name)}


async def ended(client: Any, name: str) -> Any:
    async def look() -> Any:
        batch = await client.messages.batches.retrieve(name)
        return batch if batch.processing_status == "ended" else None

    return await until(look)


async def test_a_batch_lives_from_creation_to_deletion():
    """It is in progress, then ended with results, then deleted."""
    async with asking(batch_seconds=1_000, mode="echo") as (sim, client):
        batch = await client.messages.batches.create(requests=requests(50))
        assert batch.id.startswith("msgbatch_")
        assert (batch.processing_status, batch.results_url, batch.ended_at) == ("in_progress", None, None)
        assert batch.request_counts.processing == 50
        assert (batch.expires_at - batch.created_at).total_seconds() == 86_400
        with pytest.raises(sdk().BadRequestError):
            await client.messages.batches.delete(batch.id)
        assert sim.finish_batches() == 1
        batch = await ended(client, batch.id)
        assert (batch.request_counts.processing, batch.request_counts.succeeded) == (0, 50)
        assert batch.results_url.endswith(f"{batch.id}/results")
        found = await results(client, batch.id)
        assert {name: result.message.content[0].text for name, result in found.items()} == {
            f"case-{i}": f"Q{i}" for i in range(50)
        }
        assert list(found) != [f"case-{i}" for i in range(50)]
        assert (await client.messages.batches.delete(batch.id)).type == "message_batch_deleted"
        with pytest.raises(sdk().NotFoundError):
            await client.messages.batches.retrieve(batch.id)
    assert (sim.stats.batches_created, sim.stats.batch_requests) == (1, 50)


async def test_a_batch_ends_by_itself():
    """It ends after its configured time, with the answers that single calls would have."""
    async with asking(batch_seconds=0.05) as (_, client):
        batch = await client.messages.batches.create(requests=[{"custom_id": "one", "params": ASK}])
        await ended(client, batch.id)
        alone = await client.messages.create(**ASK)
        assert (await results(client, batch.id))["one"].message.content == alone.content


async def test_requests_of_a_batch_have_different_results():
    """Errored, expired and canceled requests are distinguished, and the counts agree with the results."""
    async with asking(batch_seconds=0, batch_errored=0.2, batch_expired=0.2, batch_canceled=0.2) as (
        _,
        client,
    ):
        batch = await client.messages.batches.create(requests=requests(200))
        batch = await client.messages.batches.retrieve(batch.id)
        found = list((await results(client, batch.id)).values())
    for kind in ("succeeded", "errored", "expired", "canceled"):
        assert getattr(batch.request_counts, kind) == sum(each.type == kind for each in found) > 10
    assert next(each for each in found if each.type == "errored").error.error.type == "api_error"


async def test_an_invalid_request_fails_alone():
    """Parameters are validated when the request is processed."""
    async with asking(batch_seconds=0) as (_, client):
        wrong = {"custom_id": "wrong", "params": {**ASK, "max_tokens": 0}}
        batch = await client.messages.batches.create(requests=[*requests(2), wrong])
        found = await results(client, batch.id)
    assert found["wrong"].error.error.type == "invalid_request_error"
    assert found["case-0"].type == found["case-1"].type == "succeeded"


@pytest.mark.parametrize("name", ["case-0", "", "a b", "x" * 65, "ü", "line\n"])
async def test_one_bad_id_rejects_the_whole_batch(name):
    """A duplicate id rejects the batch, too."""
    async with asking() as (sim, client):
        with pytest.raises(sdk().BadRequestError, match="custom_id"):
            await client.messages.batches.create(
                requests=[*requests(2), {"custom_id": name, "params": ASK}]
            )
        with pytest.raises(sdk().BadRequestError):
            await client.messages.batches.create(requests=[])
        assert (await client.messages.batches.list()).data == []
    assert sim.stats.batches_created == 0


async def test_a_canceled_batch_keeps_the_results_it_has():
    """It is canceling first, then ended; requests without a result are canceled."""
    async with asking(batch_seconds=1_000) as (_, client):
        batch = await client.messages.batches.create(requests=requests(20))
        batch = await client.messages.batches.cancel(batch.id)
        assert (batch.processing_status, batch.request_counts.processing) == ("canceling", 20)
        assert batch.cancel_initiated_at is not None
        batch = await ended(client, batch.id)
        assert batch.request_counts.canceled == 20
        assert {each.type for each in (await results(client, batch.id)).values()} == {"canceled"}
        with pytest.raises(sdk().BadRequestError):
            await client.messages.batches.cancel(batch.id)


async def test_batches_are_listed_in_pages_newest_first():
    """Pages can be read forwards and backwards."""
    async with asking() as (_, client):
        made = [(await client.messages.batches.create(requests=requests(1))).id for _ in range(5)]
        newest_first = made[::-1]
        assert [each.id async for each in client.messages.batches.list(limit=2)] == newest_first
        page = await client.messages.batches.list(limit=2, after_id=newest_first[1])
        assert [each.id for each in page.data] == newest_first[2:4]
        assert (page.has_more, page.first_id, page.last_id) == (True, newest_first[2], newest_first[3])
        page = await client.messages.batches.list(limit=2, before_id=newest_first[3])
        assert ([each.id for each in page.data], page.has_more) == (newest_first[1:3], True)
        with pytest.raises(sdk().BadRequestError):
            await client.messages.batches.list(limit=0)


async def test_a_batch_with_a_lost_response_is_found_by_listing():
    """The connection broke after the batch was created."""
    async with asking(batch_unheard=1) as (sim, client):
        with pytest.raises(sdk().APIConnectionError):
            await client.messages.batches.create(requests=requests(3))
        listed = await client.messages.batches.list()
        assert [each.request_counts.processing for each in listed.data] == [3]
    assert sim.stats.of("batches.create", "batch_unheard") == 1


async def test_batches_return_overload_and_authentication_errors():
    """The batch API fails like any other call."""
    async with asking(overloaded=1) as (sim, client):
        with pytest.raises(sdk().OverloadedError):
            await client.messages.batches.list()
        sim.change(overloaded=0, keys=["another"])
        with pytest.raises(sdk().AuthenticationError):
            await client.messages.batches.create(requests=requests(1))
