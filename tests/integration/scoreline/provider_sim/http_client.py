"""A simulator and an HTTP client of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from scoreline.provider_sim.simulator import Simulator
from tests.provider import provider

HEADERS = {"x-api-key": "sim", "anthropic-version": "2023-06-01"}
ASK: dict[str, Any] = {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "Hi"}]}


@asynccontextmanager
async def asking(**settings: object) -> AsyncIterator[tuple[Simulator, httpx2.AsyncClient]]:
    async with (
        provider(**settings) as sim,
        httpx2.AsyncClient(base_url=sim.base_url, headers=HEADERS, timeout=30) as client,
    ):
        yield sim, client
