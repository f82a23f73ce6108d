"""`scoreline demo` as a newcomer runs it, on servers of its own; and while we break everything under it."""

import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.integration.worker import SCORELINE, environment, scoreline
from tests.processes import command_line, descendants, kill
from tests.waiting import until

TIMEOUT = 100


class Demo:
    """A demo in progress, and the processes under it."""

    def __init__(self, root: Path, *options: str) -> None:
        self.home = root / "servers"
        self.output = root / "output.txt"
        root.mkdir(exist_ok=True)
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [SCORELINE, "demo", *options],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment(EVAL_DATA_DIR=str(root)),
            )

    def printed(self) -> str:
        """Return what it has printed so far."""
        return self.output.read_text(encoding="utf-8")

    def kill_services(self) -> None:
        """kill -9 storage worker and coordinator."""
        for child in descendants(self.process.pid):
            if {"storage-worker", "coordinator"} & set(command_line(child)):
                kill(child)

    def kill_servers(self) -> None:
        """kill -9 Redis and Postgres."""
        kill(int((self.home / "valkey.pid").read_text()))
        kill(int((self.home / "postgres" / "postmaster.pid").read_text().split()[0]))


@asynccontextmanager
async def demo(root: Path, *options: str) -> AsyncIterator[Demo]:
    """A demo that does not outlive the block, nor do its servers."""
    running = Demo(root, *options)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.process.kill()
            running.process.wait()
        # They stop by themselves.
        await until(lambda: not (running.home / "postgres" / "postmaster.pid").exists(), 60)


async def test_the_figures_are_the_known_ones_though_an_executor_is_killed(tmp_path: Path) -> None:
    """45 and 65 of 200, whatever was killed: its active tasks were run again, and the log proves it."""
    ended = scoreline("demo", "--json", EVAL_DATA_DIR=str(tmp_path))
    assert ended.returncode == 0, ended.stderr
    document = json.loads(ended.stdout)
    assert [(each["target"], each["passed"], each["total"]) for each in document["targets"]] == [
        ("6b_finetuning", 45, 200),
        ("175b_finetuning", 65, 200),
    ]
    assert (document["verified"], document["problems"]) == (True, [])
    assert document["killed"]["in_hand"]
    assert document["retried"] >= len(document["killed"]["in_hand"])
    assert f"kill -9 {document['killed']['pid']}: executor" in ended.stderr
    await until(lambda: not (tmp_path / "servers" / "postgres" / "postmaster.pid").exists(), 60)


async def test_the_demo_survives_the_death_of_everything_under_it(tmp_path: Path) -> None:
    """Services and servers die with the executor: it takes longer, and people read of the same result."""
    async with demo(tmp_path / "root", "--executors", "3") as running:
        await until(lambda: "kill -9" in running.printed() or running.process.poll() is not None, TIMEOUT)
        running.kill_services()
        running.kill_servers()
        await until(lambda: running.process.poll() is not None, TIMEOUT)
        output = running.printed()
        assert running.process.returncode == 0, output
    assert output.splitlines()[-1].startswith("✓ 110 of 400 passed")
    for words in (
        "✓ every row of every table matches the log",
        "Attempt 2 · lost",
        "expected '18', got '26'",
        "does not match the output",
        "scoreline batch export demo-",
    ):
        assert words in output
    assert "Traceback" not in output
