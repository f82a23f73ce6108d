"""Parsing of the requests of a message batch."""

import io
import json

import pytest

from scoreline.provider_sim import batch_requests
from scoreline.provider_sim.batch_requests import read_requests
from scoreline.provider_sim.http_messages import ApiError


def body(*requests: object) -> io.BytesIO:
    return io.BytesIO(json.dumps({"requests": requests}).encode())


def request(name: object) -> dict[str, object]:
    return {"custom_id": name, "params": {}}


def refusal(content: io.BytesIO) -> str:
    with pytest.raises(ApiError) as caught:
        list(read_requests(content))
    assert caught.value.status == 400
    return caught.value.message


def test_requests_are_read_in_order():
    """Ids of 64 characters are accepted."""
    names = ["b", "a-_9", "x" * 64]
    assert [each["custom_id"] for each in read_requests(body(*map(request, names)))] == names


@pytest.mark.parametrize("name", ["", "x" * 65, "a b", "a\n", "é", 7, None])
def test_an_invalid_id_is_refused_with_its_position(name):
    """The error names the second request."""
    assert refusal(body(request("a"), request(name))).startswith(
        "requests.1.custom_id: String should match"
    )


def test_an_id_used_twice_is_refused():
    """The error names the id."""
    message = "requests.1.custom_id: custom_id must be unique within a batch: a"
    assert refusal(body(request("a"), request("a"))) == message


@pytest.mark.parametrize("item", ["a", {"custom_id": "a"}])
def test_a_request_without_parameters_is_refused(item):
    """The error names the missing field."""
    assert refusal(body(item)) == "requests.0.params: Field required"


@pytest.mark.parametrize("content", [b'{"requests": []}', b"{}"])
def test_a_batch_without_requests_is_refused(content):
    """An empty list and a missing one are the same."""
    message = "requests: List should have at least 1 item after validation"
    assert refusal(io.BytesIO(content)) == message


def test_a_body_cut_short_is_refused_after_the_requests_before_the_cut():
    """Requests are parsed one by one, not after the whole body."""
    requests = read_requests(io.BytesIO(body(request("a")).getvalue()[:-2]))
    assert next(requests)["custom_id"] == "a"
    with pytest.raises(ApiError, match="The request body is not valid JSON"):
        next(requests)


def test_a_batch_above_the_limit_is_refused(monkeypatch):
    """A batch of exactly the limit is accepted."""
    monkeypatch.setattr(batch_requests, "MOST_REQUESTS", 2)
    assert len(list(read_requests(body(request("a"), request("b"))))) == 2
    message = "requests: List should have at most 2 items"
    assert refusal(body(request("a"), request("b"), request("c"))) == message
