"""A guarded program ends with its manager."""

import asyncio
import signal
import sys
from pathlib import Path

from tests.acceptance.batch_commands import gone
from tests.waiting import until


async def test_a_guarded_program_ends_with_its_manager():
    """Its end of the pipe is closed, however the manager ends."""
    guard = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "scoreline.local.observe.guarded", "sleep", "600"),
        stdin=asyncio.subprocess.PIPE,
    )
    children = Path(f"/proc/{guard.pid}/task/{guard.pid}/children")
    [pid] = await until(lambda: children.read_text().split())
    assert guard.stdin
    guard.stdin.close()
    assert await asyncio.wait_for(guard.wait(), 20) == -signal.SIGTERM % 256
    assert gone([int(pid)])
