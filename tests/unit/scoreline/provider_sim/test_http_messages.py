"""Requests and replies of the simulator."""

import io

import pytest

from scoreline.provider_sim.http_messages import HttpRequest, compact, in_json


@pytest.mark.parametrize(
    ("headers", "key"),
    [
        ({"x-api-key": "k"}, "k"),
        ({"authorization": "Bearer k"}, "k"),
        ({"x-api-key": "k", "authorization": "Bearer other"}, "k"),
        ({"authorization": "Bearer "}, ""),
        ({}, ""),
    ],
)
def test_the_key_is_read_from_either_header(headers, key):
    """`x-api-key` has precedence over a bearer token."""
    assert HttpRequest("GET", "/", {}, headers, io.BytesIO()).key == key


def test_the_representation_of_a_request_has_no_key():
    """A log of requests holds no secret."""
    assert "secret-1" not in repr(HttpRequest("GET", "/", {}, {"x-api-key": "secret-1"}, io.BytesIO()))


def test_json_is_compact_utf_8():
    """Letters are not escaped; a lone surrogate is replaced."""
    assert compact({"a": ["é", "\ud800"]}) == '{"a":["é","?"]}'.encode()


def test_a_json_reply_has_its_content_type_and_the_given_headers():
    """A given header has precedence."""
    assert in_json(200, {}).headers == {"content-type": "application/json"}
    reply = in_json(400, [], {"request-id": "r", "content-type": "application/problem+json"})
    assert (reply.status, reply.body) == (400, b"[]")
    assert reply.headers == {"request-id": "r", "content-type": "application/problem+json"}
