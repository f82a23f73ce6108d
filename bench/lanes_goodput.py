"""Goodput of a fleet under a provider's limit, and its share of 429 replies, from a cold start."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.lanes_environment import LaneBench, SimulatedProvider, lane_bench, provider, shares
from bench.lanes_metrics import SimulatorCounts, goodput

RPM, TPM = 3_000.0, 150_000.0


@dataclass(frozen=True, slots=True)
class GoodputRun:
    """One run: clients, limits, and how the limits are known."""

    executors: int
    tpm: float = 0.0
    is_declared: bool = True
    """Whether the batch declares the limits; else they come from the provider's headers, or are learnt."""
    headers: bool = True
    rpm: float = RPM
    retry_after: float = 0.0
    """The least Retry-After of a 429."""
    faults: Mapping[str, float] = field(default_factory=dict)
    """Shares of admitted calls that the provider does not serve."""

    @property
    def served(self) -> float:
        """The share of admitted calls that the provider serves."""
        return 1 - sum(self.faults.values())


RUNS = {
    "given_1": GoodputRun(1),
    "given_4": GoodputRun(4),
    "tokens_1": GoodputRun(1, tpm=TPM),
    "tokens_4": GoodputRun(4, tpm=TPM),
    "learnt_4": GoodputRun(4, is_declared=False),
    "blind_4": GoodputRun(4, is_declared=False, headers=False),
    "retry_after_5": GoodputRun(4, is_declared=False, headers=False, retry_after=5.0),
    "retry_after_small": GoodputRun(4, is_declared=False, headers=False, rpm=600.0),
    **{
        f"{name}_{percent}": GoodputRun(4, faults={fault: percent / 100})
        for name, fault in (("overloaded", "overloaded"), ("stray", "stray_429"))
        for percent in (2, 5, 15)
    },
    "overloaded_learnt_5": GoodputRun(4, is_declared=False, faults={"overloaded": 0.05}),
    "overloaded_blind_5": GoodputRun(4, is_declared=False, headers=False, faults={"overloaded": 0.05}),
}


async def run(plan: GoodputRun, seconds: float) -> dict[str, Any]:
    """Measure one run."""
    cases = int(plan.rpm * (seconds + 30) / 60)
    flags = {"limits": _limits(plan)} if plan.is_declared else {}
    overrides = {} if plan.headers else {"limit_headers": False}
    faults = dict(plan.faults) | {"retry_after": plan.retry_after}
    async with (
        provider(rpm=plan.rpm, tpm=plan.tpm, **overrides, **faults) as sim,
        lane_bench(plan.executors) as here,
    ):
        await here.run(sim, cases=cases, **flags)
        return await measure(here, sim, seconds, rpm=plan.rpm * plan.served, tpm=plan.tpm)


async def measure(
    here: LaneBench, sim: SimulatedProvider, seconds: float, *, rpm: float, tpm: float = 0.0
) -> dict[str, Any]:
    """Measure the simulator for so many seconds from its first call."""
    first = await sim.first_call()
    before = here.cpu()
    await asyncio.sleep(seconds - (asyncio.get_running_loop().time() - first.at))
    last = await sim.counts()
    busy = shares(before, here.cpu(), last.at - first.at)
    return goodput(SimulatorCounts(first.at), last, rpm=rpm, tpm=tpm) | {"cores": busy}


def _limits(run: GoodputRun) -> dict[str, float]:
    return {"rpm": run.rpm, "tpm": run.tpm} if run.tpm else {"rpm": run.rpm}
