"""Outages of the simulator."""

import asyncio

import httpx2
import pytest

from tests.integration.scoreline.provider_sim.http_client import ASK, asking
from tests.waiting import until


async def test_an_outage_breaks_current_and_new_requests():
    """It lasts until it is switched off; the control endpoints stay available."""
    async with asking(latency=1_000) as (sim, client):
        under_way = asyncio.create_task(client.post("/v1/messages", json=ASK))
        await until(lambda: sim.stats.in_flight == 1)
        assert (await client.post("/_sim/outage", json={"seconds": 1_000})).status_code == 200
        with pytest.raises(httpx2.TransportError):
            await under_way
        with pytest.raises(httpx2.TransportError):
            await client.post("/v1/messages", json=ASK)
        await client.post("/_sim/settings", json={"latency": 0})
        await client.post("/_sim/outage", json={"seconds": 0})
        assert (await client.post("/v1/messages", json=ASK)).status_code == 200
        assert (sim.stats.in_flight, sim.stats.of("any", "outage")) == (0, 1)
