"""Directories of sandboxed runs, through the command line: a killed executor leaves none for long."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.batch_commands import Folder
from tests.integration.sandboxed import needs_sandbox
from tests.waiting import until

RUN = ("batch", "run", "--workers", "2", "--concurrency", "2", "--json")
SPEC = """
name: gated
dataset: cases.jsonl
target:
  type: command
  command: [sh, -c, "until [ -e gate/open ]; do sleep 0.05; done; echo {input}"]
  files: {gate: gate}
evaluator: exact
timeout: 60
"""


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A folder for temporary files with a short name: addresses of Unix sockets have at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="t-") as folder:
        yield Path(folder)


@needs_sandbox
@pytest.mark.timeout(120)
async def test_directories_of_a_killed_executor_are_removed_at_the_next_start(
    tmp_path: Path, redis_url: str, postgres_url: str, temporary: Path
) -> None:
    """After kill -9 the next executor removes what is left, and nothing of an executor that is alive."""
    folder = Folder(tmp_path, redis_url, postgres_url)
    (folder.root / "gate").mkdir()
    folder.cases(6)
    folder.write("scoreline.yaml", SPEC)

    def sockets() -> set[Path]:
        return {
            Path(place, "report.sock") for place, _, names in os.walk(temporary) if "report.sock" in names
        }

    async with folder.started(*RUN, TMPDIR=str(temporary)) as run:
        await until(lambda: len(sockets()) == 4, 60)
        before = sockets()
        assert run.kill_child("worker", "start") == 2
        await until(lambda: len(before - sockets()) == 2, 60)
        assert len(before & sockets()) == 2
        folder.write("gate/open", "")
        ran = await run.end()
    assert (ran.code, ran.document["passed"]) == (0, 6), ran.stderr
    assert os.listdir(temporary) == []  # noqa: PTH208 - names, not paths
