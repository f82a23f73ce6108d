"""A transient failure of a target is retried after about a second, by the times of the events on record."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.acceptance.batch_commands import Folder

pytestmark = pytest.mark.timeout(300)  # many processes, on a machine that may have much else to do

CASES = 3
"""Fewer than the consecutive failures that open the circuit breaker of the target."""
RUN = ("batch", "run", "--workers", "1", "--dataset", "cases.jsonl", "--json", "--evaluator", "exact")
EVENTS = "SELECT event FROM events ORDER BY evaluation_id, attempt, sequence"
LATE = timedelta(seconds=5)
"""Between the due time of a retry and its claim: a cycle of the coordinator, on a busy machine."""


@asynccontextmanager
async def failing_first() -> AsyncIterator[str]:
    """Serve 500 for the first request of each input, then the input."""
    seen: set[str] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(received.partition("content-length:")[2].split()[0])
        asked = json.loads(await reader.readexactly(length))["input"]
        status = b"200 OK" if asked in seen else b"500 Internal Server Error"
        seen.add(asked)
        body = asked.encode()
        head = b"HTTP/1.1 %s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % (status, len(body))
        writer.write(head + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/ask"


def moment(event: dict[str, Any]) -> datetime:
    """Return when an event occurred."""
    return datetime.fromisoformat(event["occurred_at"])


async def test_the_first_retry_follows_within_seconds(
    tmp_path: Path, redis_url: str, postgres_url: str
) -> None:
    """500, then 200: the delay on record is a second at most, and the retry begins when it is due."""
    folder = Folder(tmp_path, redis_url, postgres_url)
    folder.cases(CASES)
    async with failing_first() as url:
        ran = await folder.run(*RUN, "--target", url)
    assert (ran.code, ran.document["completed"]) == (0, CASES), ran.stderr
    with psycopg.connect(postgres_url) as connection:
        events = [event for (event,) in connection.execute(EVENTS).fetchall()]
    assert [event["type"] for event in events].count("retrying") == CASES
    claims = {
        (event["evaluation_id"], event["attempt"]): moment(event)
        for event in events
        if event["type"] == "provisioning"
    }
    for event in events:
        if event["type"] == "retrying":
            delay = datetime.fromisoformat(event["data"]["retry_at"]) - moment(event)
            assert timedelta(0) <= delay <= timedelta(seconds=1)
            claimed = claims[event["evaluation_id"], event["attempt"] + 1]
            assert delay <= claimed - moment(event) <= delay + LATE
