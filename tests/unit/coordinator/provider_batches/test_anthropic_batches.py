"""Calls to the batch API go to its own host and end within bounds."""

from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest

from coordinator.provider_batches.anthropic_batches import AnthropicBatches
from coordinator.provider_batches.provider import NoResponse, SubmissionRejected
from providers.clients import anthropic_client
from providers.endpoint import ModelEndpoint
from providers.table import PROVIDERS
from tests.unit.providers.compressed import Body, pieces_of


def batches(handler: Any) -> AnthropicBatches:
    access = ModelEndpoint(PROVIDERS["anthropic"], "m", "http://provider.test", "key-0123456789")
    return AnthropicBatches(access, anthropic_client(access, transport=httpx2.MockTransport(handler)))


async def test_a_redirected_submission_is_refused() -> None:
    """Nothing was created, and a retry would not help: the error names the host, which gets no request."""
    urls: list[str] = []

    def redirecting(request: httpx2.Request) -> httpx2.Response:
        urls.append(str(request.url))
        return httpx2.Response(307, headers={"Location": "http://127.0.0.1:9/steal?x=1"})

    made = batches(redirecting)
    with pytest.raises(SubmissionRejected, match=r"127\.0\.0\.1:9;") as caught:
        await made.create(pieces_of(b"{}"), length=2)
    assert not caught.value.is_passing
    with pytest.raises(SubmissionRejected):
        await made.retrieve("b")
    with pytest.raises(SubmissionRejected):
        [each async for each in made.results("b")]
    assert {httpx2.URL(url).host for url in urls} == {"provider.test"}


API_ERROR = {"type": "error", "error": {"type": "api_error", "message": "Internal server error"}}


@pytest.mark.parametrize(
    ("status", "document", "has_ended"),
    [(500, API_ERROR, True), (500, {"message": "no route"}, False), (502, API_ERROR, False)],
)
async def test_only_the_provider_itself_ends_a_submission_with_an_error(
    status: int, document: dict[str, Any], has_ended: bool
) -> None:
    """After the error of a gateway, the provider may still create the batch."""
    made = batches(lambda _request: httpx2.Response(status, json=document))
    with pytest.raises(NoResponse) as caught:
        await made.create(pieces_of(b"{}"), length=2)
    assert caught.value.has_ended == has_ended


async def test_results_are_fetched_from_the_host_of_the_submission() -> None:
    """A results address on another host is not used."""
    urls: list[str] = []

    def answering(request: httpx2.Request) -> httpx2.Response:
        urls.append(str(request.url))
        return httpx2.Response(200, stream=Body([b'{"custom_id": "a", "result": 5}\nnot JSON\n']))

    [found] = [each async for each in batches(answering).results("b/../c")]
    assert (found.custom_id, urls) == (
        "a",
        ["http://provider.test/v1/messages/batches/b%2F..%2Fc/results"],
    )


async def test_an_endless_list_is_bounded() -> None:
    """A provider that always has another page does not block the coordinator."""
    counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
    batch = {"id": "b", "created_at": "2030-01-01T00:00:00Z", "processing_status": "ended"}
    page = {
        "data": [{**batch, "request_counts": counts}],
        "has_more": True,
        "first_id": "b",
        "last_id": "b",
    }
    made = batches(lambda _: httpx2.Response(200, json=page))
    with pytest.raises(NoResponse):
        [each async for each in made.list(since=datetime(2020, 1, 1, tzinfo=UTC))]
