"""How batches share a lane, and what asking one costs."""

import asyncio
from collections.abc import Sequence
from statistics import median
from typing import Any

from psycopg import AsyncConnection

from bench.lanes_goodput import RPM
from bench.lanes_stage import provider, stage
from bench.runner import run as run_to_its_end

PRIORITIES = (3, 1)
SETTLING = 5.0
TASKS, ROUNDS = 6_000, 3
GENEROUS = {"rpm": 60_000_000.0}
PLACES = 64

ANSWERED = "SELECT count(*) FROM events WHERE type = 'responded' AND evaluation_id LIKE %s"


async def sharing(seconds: float) -> dict[str, Any]:
    """Run two batches of different priorities on one lane."""
    cases = int(RPM * (seconds + 40) / 60)
    async with provider(rpm=RPM) as sim, stage(4) as here:
        batches = [
            await here.run(sim, cases=cases, limits={"rpm": RPM}, priority=priority)
            for priority in PRIORITIES
        ]
        await sim.first_call()
        await asyncio.sleep(SETTLING)
        async with await AsyncConnection.connect(here.servers.postgres_url, autocommit=True) as conn:
            before = await _answered(conn, batches)
            await asyncio.sleep(seconds)
            after = await _answered(conn, batches)
    done = [late - early for early, late in zip(before, after, strict=True)]
    share, due = done[0] / sum(done), PRIORITIES[0] / sum(PRIORITIES)
    return {"share_error": round(abs(share - due), 4), "share": round(share, 4), "answered": done}


async def _answered(conn: AsyncConnection[Any], batches: Sequence[str]) -> list[int]:
    counts = []
    for batch in batches:
        row = await (await conn.execute(ANSWERED, [f"{batch}.%"])).fetchone()
        counts.append(int(row[0]) if row else 0)
    return counts


async def overhead(seconds: float) -> dict[str, Any]:
    """Compare what a task costs executors and Redis, with a generous lane and without one."""
    tasks = int(TASKS * min(1.0, seconds / 60))
    spent: dict[str, list[float]] = {"with": [], "without": []}
    async with stage(2, slots=PLACES) as here:
        await run_to_its_end(here.servers, {"mode": "simulated", "limit": 500})
        for _ in range(ROUNDS):
            for name, given in (("without", {}), ("with", {"limits": GENEROUS})):
                before = here.cpu()
                await run_to_its_end(here.servers, {"mode": "simulated", "limit": tasks, **given})
                after = here.cpu()
                used = sum(after[room] - before[room] for room in ("executors", "redis"))
                spent[name].append(1_000 * used / tasks)
    typical = {name: median(each) for name, each in spent.items()}
    return {
        "lane_overhead_ms": round(typical["with"] - typical["without"], 4),
        "ms_with_lane": round(typical["with"], 3),
        "ms_without_lane": round(typical["without"], 3),
        "tasks": tasks,
    }
