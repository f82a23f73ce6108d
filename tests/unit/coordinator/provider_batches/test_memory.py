"""The provider in memory: it rejects, loses responses and cancels as the real one does."""

import json
from collections.abc import AsyncIterator

import pytest

from coordinator.provider_batches.memory import MemoryProvider
from coordinator.provider_batches.provider import Errored, NoResponse, NotProcessed, SubmissionRejected
from projections.ledger.provider_batches import RequestCounts
from tests.builders import START

BODY = json.dumps(
    {
        "requests": [
            {"custom_id": name, "params": {"messages": [{"role": "user", "content": name}]}}
            for name in ("a", "b", "c")
        ]
    }
).encode()


async def pieces() -> AsyncIterator[bytes]:
    yield BODY[:10]
    yield BODY[10:]


@pytest.fixture
def provider():
    return MemoryProvider(lambda: START)


async def test_an_incomplete_body_creates_nothing(provider):
    """A submission that was cut off is rejected."""
    with pytest.raises(SubmissionRejected, match=f"{len(BODY)} bytes came, {len(BODY) + 1} were announced"):
        await provider.create(pieces(), length=len(BODY) + 1)
    assert provider.batches == {}


async def test_a_lost_response_leaves_a_batch_that_can_be_listed(provider):
    """The caller finds out by listing; the next response is not lost."""
    provider.lost_responses = 1
    with pytest.raises(NoResponse):
        await provider.create(pieces(), length=len(BODY))
    second = await provider.create(pieces(), length=len(BODY))
    listed = [status.provider_id async for status in provider.list(since=START)]
    assert sorted(listed) == ["msgbatch_0001", second.provider_id]


async def test_results_exist_only_after_the_end(provider):
    """The counts add up, and results are in another order than requests."""
    status = await provider.create(pieces(), length=len(BODY))
    assert (status.ended, status.counts) == (False, RequestCounts(processing=3))
    with pytest.raises(SubmissionRejected, match="it has not ended") as raised:
        await anext(provider.results(status.provider_id))
    assert raised.value.is_passing
    outcomes = {"b": Errored("api_error", "oh"), "c": NotProcessed("expired")}
    answer = provider.outcome
    provider.outcome = lambda request: outcomes.get(request["custom_id"]) or answer(request)
    assert (provider.finish(), provider.finish()) == (1, 0)
    status = await provider.retrieve(status.provider_id)
    assert (status.ended, status.counts) == (True, RequestCounts(succeeded=1, expired=1, errored=1))
    results = [result async for result in provider.results(status.provider_id)]
    assert [result.custom_id for result in results] == ["c", "b", "a"]


async def test_a_cancelled_batch_answers_nothing_more(provider):
    """An ended one can't be cancelled."""
    status = await provider.create(pieces(), length=len(BODY))
    await provider.cancel(status.provider_id)
    provider.finish()
    results = [result.outcome async for result in provider.results(status.provider_id)]
    assert results == [NotProcessed("canceled")] * 3
    with pytest.raises(SubmissionRejected, match="it has ended"):
        await provider.cancel(status.provider_id)
