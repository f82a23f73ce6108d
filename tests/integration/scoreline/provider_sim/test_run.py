"""The simulator as a program: its address, its signals, its errors."""

import asyncio
import json
import signal
import sys

import httpx2
import pytest

from tests.integration.scoreline.provider_sim.http_client import ASK, HEADERS
from tests.waiting import until


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_the_command_prints_its_address_and_stops_on_a_signal(number):
    """It exits with 0, even while a request is in flight."""
    argv = [sys.executable, "-m", "scoreline", "provider-sim", "--port", "0", "--json", "--latency", "1000"]
    process = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    url = json.loads(await process.stdout.readline())["url"]
    async with httpx2.AsyncClient(base_url=url, headers=HEADERS) as client:
        assert (await client.get("/v1/models")).status_code == 200
        waiting = asyncio.create_task(client.post("/v1/messages", json=ASK))

        async def is_served() -> bool:
            return bool((await client.get("/_sim/stats")).json()["in_flight"])

        await until(is_served)
        process.send_signal(number)
        assert await process.wait() == 0
        with pytest.raises(httpx2.TransportError):
            await waiting


@pytest.mark.parametrize(
    "flags", [["--mode", "loud"], ["--answers", "nowhere.json"], ["--host", "203.0.113.1"]]
)
async def test_flags_that_make_no_sense_are_explained_in_a_line(flags):
    """The command exits with 1, without a traceback."""
    argv = [sys.executable, "-m", "scoreline", "provider-sim", *flags]
    process = await asyncio.create_subprocess_exec(*argv, stderr=asyncio.subprocess.PIPE)
    _, errors = await process.communicate()
    assert process.returncode == 1
    assert errors.startswith(b"error: ")
    assert errors.count(b"\n") == 1
