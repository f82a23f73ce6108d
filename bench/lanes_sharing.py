"""Fairness of batches that share a lane, and the cost of one acquire request."""

import asyncio
from collections.abc import Sequence
from statistics import median
from typing import Any

from psycopg import AsyncConnection

from bench.lanes_environment import LOOK_EVERY, LaneBench, lane_bench, provider, report_progress
from bench.lanes_goodput import RPM, measure
from bench.lanes_metrics import lost
from bench.runner import run as run_to_its_end

PRIORITIES = (3, 1)
SETTLING = 5.0
SMALL_RPM, IDLE_BATCHES = 240.0, 20
TASKS, ROUNDS = 4_000, 7
GENEROUS = {"rpm": 60_000_000.0}
SLOTS = 64

ANSWERED = "SELECT count(*) FROM events WHERE type = 'responded' AND evaluation_id LIKE %s"


async def sharing(seconds: float) -> dict[str, Any]:
    """Run two batches of different priorities on one lane."""
    cases = int(RPM * (seconds + 40) / 60)
    async with provider(rpm=RPM) as sim, lane_bench(4) as here:
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


async def idle(seconds: float) -> dict[str, Any]:
    """Run a batch on a small lane alone, and another one beside idle batches at the same time."""
    alone, beside = await asyncio.gather(_beside_idle(0, seconds), _beside_idle(IDLE_BATCHES, seconds))
    return {
        "idle_cost": lost(alone, beside),
        "goodput_alone": alone,
        "goodput_beside_idle": beside,
        "idle_batches": IDLE_BATCHES,
        "rpm": SMALL_RPM,
    }


async def _beside_idle(batches: int, seconds: float) -> float:
    """Measure a batch on a lane that idle batches share: their requests wait for provider batches."""
    limits = {"rpm": SMALL_RPM}
    async with provider(rpm=SMALL_RPM, batch_seconds=86_400) as sim, lane_bench(4) as here:
        for _ in range(batches):
            await here.run(sim, cases=1, limits=limits, batch_api=True)
        while (await sim.stats())["batches_created"] < batches:  # noqa: ASYNC110 - another process
            await asyncio.sleep(LOOK_EVERY)
        await asyncio.sleep(SETTLING)  # every executor has polled the queues of idle batches once
        await here.run(sim, cases=int(SMALL_RPM * (seconds + 30) / 60), limits=limits)
        return float((await measure(here, sim, seconds, rpm=SMALL_RPM))["goodput_ratio"])


async def _answered(conn: AsyncConnection[Any], batches: Sequence[str]) -> list[int]:
    counts = []
    for batch in batches:
        row = await (await conn.execute(ANSWERED, [f"{batch}.%"])).fetchone()
        counts.append(int(row[0]) if row else 0)
    return counts


async def overhead(seconds: float) -> dict[str, Any]:
    """Compare what a task costs executors and Redis, with a generous lane and without one."""
    rounds = max(3, int(ROUNDS * seconds / 60))
    pairs = []
    async with lane_bench(2, slots=SLOTS) as here:
        await run_to_its_end(here.servers, {"mode": "simulated", "limit": 500})
        for _ in range(rounds):
            pairs.append((await _cost(here, {}), await _cost(here, {"limits": GENEROUS})))
            report_progress(f"ms a task, without and with a lane: {pairs[-1]}")
    dearer = sorted(round(with_lane - without, 4) for without, with_lane in pairs)
    return {
        "lane_overhead_ms": round(median(dearer), 4),
        "each_round_ms": dearer,
        "ms_without_lane": round(median(without for without, _ in pairs), 3),
        "tasks": TASKS,
    }


async def _cost(here: LaneBench, flags: dict[str, Any]) -> float:
    """Run a batch to its end; returns milliseconds of executors and Redis for each task."""
    before = here.cpu()
    await run_to_its_end(here.servers, {"mode": "simulated", "limit": TASKS, **flags})
    after = here.cpu()
    return round(
        1_000 * sum(after[service] - before[service] for service in ("executors", "redis")) / TASKS, 4
    )
