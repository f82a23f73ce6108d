"""Lane benchmarks under faults: a throttled or dead neighbour, an outage, and lost lane state.

For the last two the simulator has no rate limit, so that every arriving call counts: only lanes enforce the
limit.
"""

import asyncio
from typing import Any

from bench.lanes_environment import LOOK_EVERY, SimulatedProvider, lane_bench, provider
from bench.lanes_goodput import RPM, measure
from bench.lanes_metrics import busiest, lost

LIMITS = {"rpm": RPM}
A_SECOND = RPM / 60
BURST = 1.0
"""Seconds' worth that a provider takes at once: the simulator's default."""
OUTAGE, BREAKER = 30.0, 30.0
WINDOW = 10
THROTTLED_RPM = 120


async def isolation(seconds: float) -> dict[str, Any]:
    """Compare a lane alone with one beside a throttled lane, and one beside a dead lane."""
    done = {
        "alone": await _beside(seconds, None),
        "throttled": await _beside(seconds, {"rpm": THROTTLED_RPM}),
        "dead": await _beside(seconds, {"reset_before": 1}),
    }
    costs = {name: lost(done["alone"], done[name]) for name in ("throttled", "dead")}
    return {
        "isolation_cost": max(costs.values()),
        **{f"cost_beside_{name}": cost for name, cost in costs.items()},
        **{f"goodput_{name}": ratio for name, ratio in done.items()},
    }


async def _beside(seconds: float, faults: dict[str, float] | None) -> float:
    """Measure a healthy lane; a batch on a faulty lane is running before it."""
    cases = int(A_SECOND * (seconds + 30))
    async with provider(rpm=RPM) as well, provider(**(faults or {})) as ill, lane_bench(4) as here:
        if faults:
            await here.run(ill, cases=cases, limits=LIMITS, retries=100)
            await _any_call(ill)
        await here.run(well, cases=cases, limits=LIMITS)
        return float((await measure(here, well, seconds, rpm=RPM))["goodput_ratio"])


async def _any_call(sim: SimulatedProvider) -> None:
    while not (await sim.counts()).admitted:  # noqa: ASYNC110 - another process
        await asyncio.sleep(LOOK_EVERY)


async def outage(seconds: float) -> dict[str, Any]:
    """See how soon after an outage calls go through again, and how many at once."""
    lead = max(5.0, seconds / 4)
    async with provider() as sim, lane_bench(4) as here:
        await here.run(sim, cases=int(A_SECOND * (lead + seconds + 30)), limits=LIMITS, retries=100)
        await sim.first_call()
        await asyncio.sleep(lead)
        await sim.go_out(OUTAGE)
        over = asyncio.get_running_loop().time() + OUTAGE
        await asyncio.sleep(0.5)
        before = await sim.counts()
        while (back := await sim.counts()).ok == before.ok:  # noqa: ASYNC110 - another process
            await asyncio.sleep(LOOK_EVERY)
        await asyncio.sleep(seconds / 2)
        last = await sim.counts()
    since = max(before.each_second) + 2
    fullest = busiest(last.each_second, since=since, seconds=1)
    return {
        "recovery_s": round(max(0.0, back.at - over), 2),
        "is_within_probe": back.at - over <= BREAKER + 1.0,
        "herd": round(fullest / A_SECOND, 3),
        "fullest_second": fullest,
    }


async def loss(seconds: float) -> dict[str, Any]:
    """Lose all lanes in the middle of a run, and see whether more is called than the limit allows."""
    async with provider() as sim, lane_bench(4) as here:
        await here.run(sim, cases=int(A_SECOND * (seconds + 30)), limits=LIMITS)
        await sim.first_call()
        await asyncio.sleep(seconds / 2)
        lanes, before = await here.forget_lanes(), await sim.counts()
        await asyncio.sleep(seconds / 2)
        last = await sim.counts()
    fullest = busiest(last.each_second, since=max(before.each_second), seconds=WINDOW)
    allowed = A_SECOND * (WINDOW + BURST)
    return {
        "loss_overshoot": round(max(0.0, fullest / allowed - 1), 4),
        "fullest_10_s": fullest,
        "allowed_10_s": allowed,
        "lanes_lost": lanes,
        "answered_after": last.ok - before.ok,
    }
