"""`--distributed`, `--workers` and `--queue`: which processes serve a batch, on real servers."""

import json
from pathlib import Path

import pytest

from tests.acceptance.batch_commands import TIMEOUT, Folder
from tests.waiting import until

CASES = 12
RUN = ("batch", "run", "--dataset", "cases.jsonl", "--target", "python:app:echo", "--evaluator", "exact")
DEAD_QUEUE = "redis://127.0.0.1:9"

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def folder(tmp_path: Path, redis_url: str, postgres_url: str) -> Folder:
    made = Folder(tmp_path, redis_url, postgres_url)
    made.cases(CASES)
    return made


def logged(stderr: str, message: str) -> list[dict[str, str]]:
    """List the log lines of a message."""
    lines = [json.loads(line) for line in stderr.splitlines() if line.startswith("{")]
    return [line for line in lines if line["message"] == message]


async def test_a_distributed_run_starts_as_many_executors_as_it_is_given(folder: Folder) -> None:
    """`--distributed --workers 2` serves the batch with two executors of its own; --verbose shows it."""
    ran = await folder.run(*RUN, "--distributed", "--workers", "2", "--verbose", "--json")
    assert (ran.code, ran.document["completed"], ran.document["passed"]) == (0, CASES, CASES), ran.stderr
    batch_id = ran.document["batch_id"]
    ready = [line["executor"] for line in logged(ran.stderr, "ready") if "executor" in line]
    assert sorted(name.rpartition("-")[0] for name in ready) == [f"{batch_id}-0", f"{batch_id}-1"]
    closed = logged(ran.stderr, "attempt closed")
    assert sorted(line["evaluation_id"] for line in closed) == [
        f"{batch_id}.{number:08}" for number in range(1, CASES + 1)
    ]
    assert {line["status"] for line in closed} == {"success"}


async def test_a_fleet_meets_at_the_queue_that_is_named(folder: Folder, redis_url: str) -> None:
    """`--queue URL` of `batch run` and of `worker start` overrides EVAL_REDIS_URL in both."""
    folder.environ["EVAL_REDIS_URL"] = DEAD_QUEUE
    refused = await folder.run(*RUN, "--distributed", "--detach")
    assert (refused.code, "does not answer" in refused.stderr) == (1, True), refused.stderr
    queue = ("--queue", redis_url)
    async with (
        folder.started("worker", "start", "--id", "worker-7", *queue, "--verbose") as worker,
        folder.started(*RUN, "--distributed", *queue, "--json") as running,
    ):
        await until(lambda: folder.ask("SELECT 1 FROM batches"), TIMEOUT)
        environ = {**folder.environ, "EVAL_REDIS_URL": redis_url}
        folder.environ = environ  # services take the queue from the environment
        async with (
            folder.started("coordinator", "start"),
            folder.started("storage-worker", "start"),
        ):
            ran = await running.end()
        worker.process.terminate()
        served = await worker.end()
    assert (ran.code, ran.document["completed"]) == (0, CASES), ran.stderr
    assert len(logged(served.stderr, "attempt closed")) == CASES
    assert {line["executor"].rpartition("-")[0] for line in logged(served.stderr, "attempt closed")} == {
        "worker-7"
    }
