"""How much of a provider's limit a fleet uses, and how often it is refused, from a cold start."""

import asyncio
from dataclasses import dataclass
from typing import Any

from bench.lanes_figures import Seen, goodput
from bench.lanes_stage import Provider, Stage, provider, shares, stage

RPM, TPM = 3_000.0, 150_000.0


@dataclass(frozen=True, slots=True)
class Course:
    """One run: who calls, under what limits, and what it is told of them."""

    executors: int
    tpm: float = 0.0
    is_told: bool = True
    """Whether the batch says the limits; else the provider's headers have to, or its refusals."""
    headers: bool = True


COURSES = {
    "given_1": Course(1),
    "given_4": Course(4),
    "tokens_1": Course(1, tpm=TPM),
    "tokens_4": Course(4, tpm=TPM),
    "learnt_4": Course(4, is_told=False),
    "blind_4": Course(4, is_told=False, headers=False),
}


async def run(course: Course, seconds: float) -> dict[str, Any]:
    """Measure one course."""
    cases = int(RPM * (seconds + 30) / 60)
    flags = {"limits": _limits(course)} if course.is_told else {}
    told = {} if course.headers else {"limit_headers": False}
    async with provider(rpm=RPM, tpm=course.tpm, **told) as sim, stage(course.executors) as here:
        await here.run(sim, cases=cases, **flags)
        return await watched(here, sim, seconds, rpm=RPM, tpm=course.tpm)


async def watched(
    here: Stage, sim: Provider, seconds: float, *, rpm: float, tpm: float = 0.0
) -> dict[str, Any]:
    """Watch the simulator for so long, from the first call that it sees."""
    first = await sim.first_call()
    before = here.cpu()
    await asyncio.sleep(seconds - (asyncio.get_running_loop().time() - first.at))
    last = await sim.look()
    busy = shares(before, here.cpu(), last.at - first.at)
    return goodput(Seen(first.at), last, rpm=rpm, tpm=tpm) | {"cores": busy}


def _limits(course: Course) -> dict[str, float]:
    return {"rpm": RPM, "tpm": course.tpm} if course.tpm else {"rpm": RPM}
