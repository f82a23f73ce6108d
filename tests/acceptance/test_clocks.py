"""Every process on a clock of its own: what is decided, is decided by the clock of Postgres or of Redis.

The clocks are shifted with libfaketime (Debian: `apt-get install faketime`), which changes the time of day
of a process and leaves its monotonic clock alone.
"""

import asyncio
import copy
import json
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from time import monotonic

import pytest

from tests.acceptance.batch_commands import Folder
from tests.provider import provider
from tests.waiting import until

FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
pytestmark = [
    pytest.mark.skipif(FAKETIME is None, reason="needs libfaketime: apt-get install faketime"),
    pytest.mark.timeout(300),
]

COORDINATOR, EXECUTOR, STORAGE_WORKER = "+6m", "-10m", "-3h"
PAUSE = 3
"""Seconds that the target asks to wait."""


def shifted(folder: Folder, by: str) -> Folder:
    """Return the folder for processes whose clocks are off by so much."""
    other = copy.copy(folder)
    preload = {"LD_PRELOAD": str(FAKETIME), "FAKETIME": by, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    other.environ = {**folder.environ, **preload}
    return other


class Target:
    """An HTTP target that refuses each prompt once, and keeps when each was asked."""

    def __init__(self) -> None:
        self.asked: dict[str, list[float]] = defaultdict(list)
        self.is_silent = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        head = await reader.readuntil(b"\r\n\r\n")
        lines = dict(line.lower().split(b": ") for line in head.split(b"\r\n")[1:] if line)
        [prompt] = json.loads(await reader.readexactly(int(lines[b"content-length"]))).values()
        if self.is_silent:
            await reader.read()  # until the executor gives up
            writer.close()
            return
        self.asked[prompt].append(monotonic())
        if len(self.asked[prompt]) == 1:
            status, body = f"429 Too Many Requests\r\nRetry-After: {PAUSE}", "{}"
        else:
            status, body = "200 OK", json.dumps({"output": prompt})
        head_out = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n"
        writer.write(f"{head_out}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode())
        await writer.drain()
        writer.close()


@asynccontextmanager
async def fleet(folder: Folder) -> AsyncIterator[None]:
    """Run one service of each kind, each on a clock of its own."""
    async with AsyncExitStack() as stack:
        for by, *argv in (
            (COORDINATOR, "coordinator", "start"),
            (STORAGE_WORKER, "storage-worker", "start"),
            (EXECUTOR, "worker", "start", "--concurrency", "4"),
        ):
            await stack.enter_async_context(shifted(folder, by).started(*argv))
        yield


async def test_shifted_clocks_change_nothing(tmp_path: Path, redis_url: str, postgres_url: str) -> None:
    """A retry waits as long as the target asked, and a batch ends by its own `max_duration`, no other."""
    folder, target = Folder(tmp_path, redis_url, postgres_url), Target()
    server = await asyncio.start_server(target.serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/ask"
    folder.cases(6)
    ask = ("batch", "run", "--distributed", "--json", "--dataset", "cases.jsonl", "--evaluator", "exact")
    async with fleet(folder), server:
        ran = await shifted(folder, "-1h").run(*ask, "--target", url, "--max-duration", "10m")
        assert (ran.code, ran.document["status"], ran.document["completed"]) == (0, "completed", 6), (
            ran.stderr
        )
        pauses = [second - first for first, second in target.asked.values()]
        assert min(pauses) > PAUSE - 0.1, "executors behind the coordinator are retried too early"
        assert max(pauses) < 60
        target.is_silent = True
        expired = await shifted(folder, "+1h").run(*ask, "--target", url, "--max-duration", "4s")
        assert expired.document["status"] == "expired", expired.stderr
        assert expired.document["timed_out"] == 6


async def test_coordinators_six_minutes_apart_do_not_submit_a_provider_batch_twice(
    tmp_path: Path, redis_url: str, postgres_url: str
) -> None:
    """A submission of unknown fate is repeated after six minutes by the clock of Postgres, not sooner."""
    folder = Folder(tmp_path, redis_url, postgres_url)
    folder.cases(5)
    claude = ("--target", "anthropic/claude-sonnet-4-5", "--evaluator", "exact", "--batch-api")
    async with provider(mode="echo", batch_seconds=1_000, reset_before=1.0) as sim:
        folder.environ |= {"ANTHROPIC_BASE_URL": sim.base_url, "ANTHROPIC_API_KEY": "sk-ant-test"}
        submit = ("batch", "run", "--distributed", "--detach", "--dataset", "cases.jsonl", *claude)
        assert (await folder.run(*submit)).code == 0
        async with shifted(folder, "-7m").started("coordinator", "start") as first:
            await until(lambda: sim.stats.of("batches.create", "reset_before"), 60)
            first.process.kill()
        sim.change(reset_before=0.0)
        looked = sim.stats.of("batches.list", 200)
        async with folder.started("coordinator", "start"):
            await until(
                lambda: sim.stats.batches_created or sim.stats.of("batches.list", 200) >= looked + 3, 60
            )
        assert sim.stats.batches_created == 0
