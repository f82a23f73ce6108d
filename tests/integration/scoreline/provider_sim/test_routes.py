"""Paths that the simulator does not have."""

import pytest

from scoreline.provider_sim.message_batches import PATH as BATCHES
from tests.integration.scoreline.provider_sim.http_client import asking


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/messages", 404),
        ("POST", "/nowhere", 404),
        ("GET", f"{BATCHES}/none", 404),
        ("PUT", BATCHES, 404),
    ],
)
async def test_an_unknown_path_is_not_found(method, path, status):
    """The error has the API's format."""
    async with asking() as (_, client):
        reply = await client.request(method, path)
    assert (reply.status_code, reply.json()["error"]["type"]) == (status, "not_found_error")
