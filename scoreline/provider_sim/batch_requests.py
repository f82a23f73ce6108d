"""Parsing of the requests of a batch: one invalid id rejects all."""

import re
from collections.abc import Iterator
from typing import IO

import ijson  # type: ignore[import-untyped]  # ships no types

from scoreline.provider_sim.http_messages import Json, invalid

MOST_REQUESTS = 100_000
_CUSTOM_ID = re.compile(r"^[a-zA-Z0-9_-]{1,64}\Z")


def read_requests(body: IO[bytes]) -> Iterator[Json]:
    """Read one request after the other, so that all of them are never in memory."""
    seen = set[str]()
    try:
        for item in ijson.items(body, "requests.item", use_float=True):
            if len(seen) == MOST_REQUESTS:
                raise invalid(f"requests: List should have at most {MOST_REQUESTS} items")
            seen.add(_name(item, seen))
            yield item
    except ijson.JSONError:
        raise invalid("The request body is not valid JSON") from None
    if not seen:
        raise invalid("requests: List should have at least 1 item after validation")


def _name(item: Json, seen: set[str]) -> str:
    at = len(seen)
    if not isinstance(item, dict) or "params" not in item:
        raise invalid(f"requests.{at}.params: Field required")
    name = item.get("custom_id")
    if not isinstance(name, str) or not _CUSTOM_ID.match(name):
        raise invalid(f"requests.{at}.custom_id: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'")
    if name in seen:
        raise invalid(f"requests.{at}.custom_id: custom_id must be unique within a batch: {name}")
    return name
