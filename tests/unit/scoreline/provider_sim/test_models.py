"""The list of models in the format of either API."""

import io
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from scoreline.provider_sim.calls import CallHandler
from scoreline.provider_sim.http_messages import ApiError, HttpRequest
from scoreline.provider_sim.models import list_models
from scoreline.provider_sim.settings import SimulatorSettings, changed

START = datetime(2026, 1, 1, tzinfo=UTC)
ANTHROPIC = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
OPENAI = {"authorization": "Bearer k"}


async def listed(headers: dict[str, str], **settings: object) -> Any:
    calls = CallHandler(changed(SimulatorSettings(), settings), clock=lambda: 0.0, utc_now=lambda: START)
    reply = await list_models(HttpRequest("GET", "/v1/models", {}, headers, io.BytesIO()), calls)
    assert isinstance(reply.body, bytes)
    return json.loads(reply.body)


@pytest.mark.parametrize("headers", [ANTHROPIC, OPENAI])
async def test_the_configured_models_are_listed_or_two_by_default(headers):
    """Both APIs list the same names."""
    names = [each["id"] for each in (await listed(headers, models=["b", "a"]))["data"]]
    assert names == ["b", "a"]
    names = [each["id"] for each in (await listed(headers))["data"]]
    assert names == ["simulated-large", "simulated-small"]


async def test_the_version_header_selects_the_format():
    """Anthropic's list has page markers and the context size; OpenAI's has neither."""
    page = await listed(ANTHROPIC, models=["a", "b"], context_tokens=9)
    assert (page["first_id"], page["last_id"], page["has_more"]) == ("a", "b", False)
    assert {each["max_input_tokens"] for each in page["data"]} == {9}
    assert {each["object"] for each in (await listed(OPENAI))["data"]} == {"model"}


async def test_models_are_listed_only_with_a_key():
    """The status is 401."""
    with pytest.raises(ApiError) as caught:
        await listed({})
    assert caught.value.status == 401
