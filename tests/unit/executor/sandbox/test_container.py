"""One run of a container: what ended it, and the output within its limit."""

import asyncio
from pathlib import Path

from executor.sandbox.container import ContainerRun
from executor.sandbox.engine import ContainerEngine
from executor.sandbox.job import SandboxOutcome
from tests.unit.executor.targets.fake_engine import Box, Image, fake_engine


async def outcome_of(
    image: Image, folder: Path, *, seconds: float = 30, output_bytes: int = 1_000
) -> tuple[SandboxOutcome, list[str]]:
    """Run an image once; returns the outcome and the calls of the engine."""
    async with fake_engine(folder / "s", {"image": image}) as fake:
        engine = ContainerEngine(fake.host)
        try:
            await engine.create("c", {"Image": "image"})
            outcome = await ContainerRun(engine, "c", output_bytes=output_bytes).finish(b"in", seconds)
        finally:
            await engine.aclose()
        return outcome, fake.calls


async def test_the_streams_are_kept_apart_up_to_the_limit(tmp_path: Path) -> None:
    """Output of exactly the limit, both streams together, is no excess."""

    async def write(box: Box) -> int:
        box.write(await box.stdin.read(-1))
        box.write(b"err", stream=2)
        box.write(b"out")
        return 7

    outcome, calls = await outcome_of(write, tmp_path, output_bytes=8)
    assert (outcome.stdout, outcome.stderr) == (b"inout", b"err")
    assert (outcome.exit_code, outcome.killed_by) == (7, None)
    assert "POST containers/kill" not in calls


async def test_output_over_the_limit_is_cut_and_the_container_is_killed(tmp_path: Path) -> None:
    """What was written before is kept."""

    async def write(box: Box) -> int:
        box.write(b"err", stream=2)
        box.write(b"123456")
        await asyncio.Event().wait()
        return 0

    outcome, calls = await outcome_of(write, tmp_path, output_bytes=8)
    assert (outcome.stdout, outcome.stderr, outcome.killed_by) == (b"12345", b"err", "output")
    assert outcome.exit_code == 137
    assert calls[-1] == "POST containers/kill"


async def test_a_container_that_does_not_end_is_killed_at_its_time_limit(tmp_path: Path) -> None:
    """With the exit code of a killed program."""

    async def hang(_box: Box) -> int:
        await asyncio.Event().wait()
        return 0

    outcome, calls = await outcome_of(hang, tmp_path, seconds=0.1)
    assert (outcome.exit_code, outcome.killed_by) == (137, "time")
    assert calls[-1] == "POST containers/kill"


async def test_only_the_engine_knows_whether_memory_ended_a_killed_program(tmp_path: Path) -> None:
    """A program may exit with 137 by itself; no other exit code is looked up."""

    async def hoard(box: Box) -> int:
        box.oom_killed = True
        return 137

    async def exit_137(_box: Box) -> int:
        return 137

    async def exit_1_after_a_child_was_killed(box: Box) -> int:
        box.oom_killed = True
        return 1

    assert (await outcome_of(hoard, tmp_path))[0].killed_by == "memory"
    assert (await outcome_of(exit_137, tmp_path))[0].killed_by is None
    assert (await outcome_of(exit_1_after_a_child_was_killed, tmp_path))[0].killed_by is None
