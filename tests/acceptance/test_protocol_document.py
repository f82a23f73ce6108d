"""The shell example of the protocol page, run as it stands."""

import asyncio
import os
import re
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest

from tests.integration.worker import site, worker_process
from tests.waiting import until

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "protocol.md"


@pytest.mark.skipif(not shutil.which("redis-cli"), reason="redis-cli is not installed")
@pytest.mark.parametrize("workers", [1, 2])
async def test_a_history_written_backwards_with_redis_cli_arrives_as_completed(
    workers, redis_url, postgres_url
):
    """The commands of the page, typed into a shell, make a completed evaluation, whatever the workers."""
    script = re.search(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert script
    how = ["-s", redis_url.removeprefix("unix://")] if redis_url.startswith("unix") else ["-u", redis_url]
    environ = {**os.environ, "REDIS_CLI": " ".join(["redis-cli", *how]), "ID": f"shell-{workers}"}
    async with site(redis_url, postgres_url) as here, worker_process(here, "--workers", str(workers)):
        shell = partial(subprocess.run, env=environ, check=True, capture_output=True, timeout=20)
        await asyncio.to_thread(shell, ["sh", "-euc", script[1]])

        async def completed() -> bool:
            found = await here.rows(
                "SELECT state, sequence FROM evaluations WHERE evaluation_id = %s", environ["ID"]
            )
            return found == [("completed", 3)]

        await until(completed)
