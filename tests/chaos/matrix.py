"""Runs of the matrix: one fault, one seed, one batch; and many of them for the proof."""

import asyncio
import traceback
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from eventlog.tasks import end
from tests.chaos.checker import check, wait_for_empty_hands
from tests.chaos.faults import FAULTS, Fault
from tests.chaos.findings import Findings
from tests.chaos.run import TIMEOUT, Run
from tests.chaos.world import World

LONGEST_RUN = 75.0
"""Seconds, after which a run is given up: less than a test may take."""
REGRESSIONS = Path(__file__).parent / "regressions.txt"


class Regression(NamedTuple):
    """A run that once went wrong, and why."""

    fault: str
    seed: int
    sentence: str


def regressions() -> list[Regression]:
    """Read the runs that are kept for ever."""
    lines = (line.split(maxsplit=2) for line in REGRESSIONS.read_text().splitlines() if line[:1] != "#")
    return [Regression(name, int(seed), sentence) for name, seed, sentence in filter(None, lines)]


async def run_once(world: World, fault: Fault, seed: int) -> Findings:
    """Run one fault with one seed, and return what is not as it should be."""
    run = Run.begin(
        world, _name(world, f"{fault.name}.{seed}"), Random(f"{fault.name} {seed}"), fault.setup
    )
    async with run.stack:
        try:
            async with asyncio.timeout(LONGEST_RUN):
                await _disturb(run, fault)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - named among the findings
            run.complaints.append("".join(traceback.format_exception_only(error)).strip())
        findings = await _findings(run)
    if findings:
        await world.restore()
    return findings


def _name(world: World, wanted: str) -> str:
    """Name a batch; the same run may come again."""
    name = wanted if wanted not in world.batches else f"{wanted}.{len(world.batches)}"
    world.batches.add(name)
    return name


async def _disturb(run: Run, fault: Fault) -> None:
    if fault.setup.workers:
        await run.world.workers.muster(fault.setup.workers, gap_timeout=fault.setup.gap_timeout)
    writing = asyncio.create_task(run.write())
    try:
        await fault.inject(run)
        await writing
        await run.until_ended()
    finally:
        await end([writing])
        if not writing.cancelled() and (error := writing.exception()):
            run.complaints.append(f"a writer broke: {error!r}")  # the reason, whatever else came of it


async def _findings(run: Run) -> Findings:
    expected = replace(run.expected, acknowledged=run.witness.acknowledged)
    left = await wait_for_empty_hands(run.world.servers.redis_url, TIMEOUT / 3)
    async with run.world.postgres(run.postgres_url) as conn:
        findings = await check(conn, expected)
    findings.violations = run.complaints + findings.violations
    findings.violations += [f"pending at the end: {left}"] if left else []
    findings.paths.update({answer.value: n for answer, n in run.witness.answers.items()})
    findings.paths.update(run.noted() + run.notes)
    return findings


def chosen(names: Iterable[str]) -> list[Fault]:
    """Find faults by name; none at all means every one."""
    wanted = list(names)
    return [FAULTS[name] for name in wanted] if wanted else list(FAULTS.values())
