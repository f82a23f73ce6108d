"""The baseline without lanes: a fixed number of concurrent calls, with the retries of the SDK.

As a program it is one such process: `python -m bench.lanes_naive URL RETRIES AT_ONCE`.
"""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

from anthropic import APIError, AsyncAnthropic

from bench.lanes_environment import MODEL, provider
from bench.lanes_goodput import RPM
from bench.lanes_metrics import SimulatorCounts, goodput

AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class NaiveClients:
    """Processes that know nothing of each other."""

    processes: int
    retries: int


CROWDS = {"semaphore_1": NaiveClients(1, retries=0), "sdk_retries_4": NaiveClients(4, retries=2)}


async def run(crowd: NaiveClients, seconds: float) -> dict[str, Any]:
    """Measure what gets through."""
    async with provider(rpm=RPM) as sim, _calling(crowd, sim.url):
        first = await sim.first_call()
        await asyncio.sleep(seconds - (asyncio.get_running_loop().time() - first.at))
        return goodput(SimulatorCounts(first.at), await sim.counts(), rpm=RPM)


@asynccontextmanager
async def _calling(crowd: NaiveClients, url: str) -> AsyncIterator[None]:
    processes = [await _start(url, crowd.retries) for _ in range(crowd.processes)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
        await asyncio.gather(*(process.wait() for process in processes))


async def _start(url: str, retries: int) -> Process:
    argv = [sys.executable, "-m", "bench.lanes_naive", url, str(retries), str(AT_ONCE)]
    return await asyncio.create_subprocess_exec(*argv, stdin=PIPE, stderr=DEVNULL)


async def call_for_ever(url: str, *, retries: int, at_once: int) -> None:
    """Call, so many at a time; what fails has failed, and the next is tried."""
    client = AsyncAnthropic(api_key="sim", base_url=url, max_retries=retries)
    numbers = count(1)
    await asyncio.gather(*(_one_after_the_other(client, numbers) for _ in range(at_once)))


async def _one_after_the_other(client: AsyncAnthropic, numbers: "count[int]") -> None:
    for number in numbers:
        try:
            await client.messages.create(
                model=MODEL,
                max_tokens=1_024,
                messages=[{"role": "user", "content": f"What is {number} + {number * 7919 % 1_000}?"}],
            )
        except APIError:
            continue


if __name__ == "__main__":
    from scoreline.local.processes import end_with_parent

    end_with_parent()
    asyncio.run(call_for_ever(sys.argv[1], retries=int(sys.argv[2]), at_once=int(sys.argv[3])))
