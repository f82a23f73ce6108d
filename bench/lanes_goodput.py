"""How much of a provider's limit a fleet uses, and how often it is refused, from a cold start."""

import asyncio
from dataclasses import dataclass
from typing import Any

from bench.lanes_environment import LaneBench, SimulatedProvider, provider, shares, stage
from bench.lanes_metrics import SimulatorCounts, goodput

RPM, TPM = 3_000.0, 150_000.0


@dataclass(frozen=True, slots=True)
class GoodputRun:
    """One run: who calls, under what limits, and what it is told of them."""

    executors: int
    tpm: float = 0.0
    is_told: bool = True
    """Whether the batch says the limits; else the provider's headers have to, or its refusals."""
    headers: bool = True


COURSES = {
    "given_1": GoodputRun(1),
    "given_4": GoodputRun(4),
    "tokens_1": GoodputRun(1, tpm=TPM),
    "tokens_4": GoodputRun(4, tpm=TPM),
    "learnt_4": GoodputRun(4, is_told=False),
    "blind_4": GoodputRun(4, is_told=False, headers=False),
}


async def run(course: GoodputRun, seconds: float) -> dict[str, Any]:
    """Measure one course."""
    cases = int(RPM * (seconds + 30) / 60)
    flags = {"limits": _limits(course)} if course.is_told else {}
    told = {} if course.headers else {"limit_headers": False}
    async with provider(rpm=RPM, tpm=course.tpm, **told) as sim, stage(course.executors) as here:
        await here.run(sim, cases=cases, **flags)
        return await watched(here, sim, seconds, rpm=RPM, tpm=course.tpm)


async def watched(
    here: LaneBench, sim: SimulatedProvider, seconds: float, *, rpm: float, tpm: float = 0.0
) -> dict[str, Any]:
    """Watch the simulator for so long, from the first call that it sees."""
    first = await sim.first_call()
    before = here.cpu()
    await asyncio.sleep(seconds - (asyncio.get_running_loop().time() - first.at))
    last = await sim.look()
    busy = shares(before, here.cpu(), last.at - first.at)
    return goodput(SimulatorCounts(first.at), last, rpm=rpm, tpm=tpm) | {"cores": busy}


def _limits(course: GoodputRun) -> dict[str, float]:
    return {"rpm": RPM, "tpm": course.tpm} if course.tpm else {"rpm": RPM}
