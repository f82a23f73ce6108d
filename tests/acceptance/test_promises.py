"""Promises of the README that no other acceptance test proves, each as an adversary would test it.

`docs/explanation/proofs.md` lists every promise with its test; `python -m tests.mutants --promises`
removes the mechanism behind each, and its test must fail.
"""

import asyncio
import json
import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

import pytest
from redis.asyncio import Redis

from eventlog import payloads as p
from eventlog.events import Event
from tests.acceptance.batch_commands import TIMEOUT, Folder
from tests.builders import history
from tests.disordered import arrivals, in_order, lives
from tests.integration.sandboxed import needs_sandbox
from tests.integration.worker import Site, Started, commits_blocked, site, worker_process
from tests.waiting import until

RUN = ("batch", "run", "--workers", "1", "--json", "--dataset", "cases.jsonl")
JUDGE = """
import pathlib, time

HERE = pathlib.Path(__file__).parent

def slow(output):
    while not (HERE / "open").exists():
        time.sleep(0.01)
    return True
"""
SPY = """
import os, pathlib, socket, sys

port, secret_file = sys.argv[1], sys.argv[2]
found = [name for name in ("SPY_SECRET", "EVAL_REDIS_URL", "EVAL_POSTGRES_URL") if name in os.environ]
try:
    socket.create_connection(("127.0.0.1", int(port)), timeout=2)
    found.append("network")
except OSError:
    pass
for path in (secret_file, "/proc/1/environ"):
    try:
        text = pathlib.Path(path).read_text(errors="replace")
        found += [path] if "confidential" in text else []
    except OSError:
        pass
print(" ".join(found) or "nothing")
"""
"""A program that reports what it reaches."""
LIFE = "queued provisioning running responded scored completed"

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def folder(tmp_path: Path, redis_url: str, postgres_url: str) -> Folder:
    return Folder(tmp_path, redis_url, postgres_url)


@asynccontextmanager
async def stored(folder: Folder, *options: str) -> AsyncIterator[tuple[Site, Started]]:
    """Lend a site whose events a storage worker applies."""
    urls = folder.environ["EVAL_REDIS_URL"], folder.postgres_url
    async with site(*urls) as here, worker_process(here, *options) as started:
        yield here, started


async def test_a_batch_is_accepted_whole_or_not_at_all(folder: Folder) -> None:
    """A bad row at line 2,501 leaves nothing behind; without it all is in Postgres, and no executor is."""
    rows = "".join(f'{{"input": "{number}", "expected": "{number}"}}\n' for number in range(2_500))
    folder.write("cases.jsonl", rows + '{"input": \n')
    asked = (*RUN, "--target", "python:app:echo", "--evaluator", "exact", "--distributed", "--workers", "0")
    refused = await folder.run(*asked, "--detach")
    assert (refused.code, "cases.jsonl:2501" in refused.stderr.replace(", line ", ":")) == (1, True), (
        refused.stderr
    )
    counted = "SELECT (SELECT count(*) FROM batches), (SELECT count(*) FROM evaluations)"
    assert folder.ask(counted) == [(0, 0)]
    folder.write("cases.jsonl", rows)
    accepted = await folder.run(*asked, "--detach")
    assert (accepted.code, folder.ask(counted)) == (0, [(1, 2_500)]), accepted.stderr
    assert folder.calls == []


async def test_an_answer_on_record_is_not_asked_for_again(folder: Folder) -> None:
    """kill -9 of the executor between answer and score: another one scores it without a second call."""
    folder.cases(2)
    folder.write("judge.py", JUDGE)
    judged = ("--target", "python:app:echo", "--evaluator", "python:judge:slow")
    answered = "SELECT count(*) FROM evaluations WHERE state = 'responded'"
    async with folder.started(*RUN, *judged) as running:
        await until(lambda: folder.ask(answered) == [(2,)], TIMEOUT)
        assert running.kill_child("worker") == 1
        folder.write("open", "")
        ran = await running.end()
    assert (ran.code, ran.document["passed"], sorted(folder.calls)) == (0, 2, ["0", "1"]), ran.stderr
    attempts = folder.ask("SELECT evaluation_id, attempt FROM evaluations WHERE attempt > 1")
    assert len(attempts) == 2


@needs_sandbox
async def test_untrusted_code_reaches_nothing(folder: Folder, tmp_path: Path) -> None:
    """A program looks for a port, secrets and a file of the host, run by an executor without a database."""
    secret = tmp_path / "secret"
    secret.write_text("confidential")
    async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        folder.write("spy.py", SPY)
        folder.write("cases.jsonl", '{"input": "x", "expected": "nothing"}\n')
        command = ["python3", "spy.py", str(port), str(secret)]
        target = {"type": "command", "command": command, "files": {"spy.py": "spy.py"}}
        spec: dict[str, Any] = {"dataset": "cases.jsonl", "targets": [target], "evaluators": ["exact"]}
        folder.write("scoreline.yaml", json.dumps(spec))
        folder.environ["SPY_SECRET"] = "confidential"
        worker = {name: value for name, value in folder.environ.items() if name != "EVAL_POSTGRES_URL"}
        run = ("batch", "run", "--distributed", "--json")
        async with (
            folder.started(*run) as running,
            folder.started("coordinator", "start"),
            folder.started("storage-worker", "start"),
        ):
            folder.environ = worker
            async with folder.started("worker", "start"):
                ran = await running.end()
    assert (ran.code, ran.document["passed"]) == (0, 1), ran.stderr


class Endpoint:
    """An HTTP target that notes when it was called; one of its paths is throttled."""

    def __init__(self) -> None:
        self.called_at: list[float] = []
        self.refused = 0
        self.url = self.throttled = ""

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = re.search(rb"(?i)content-length: (\d+)", head)
                await reader.readexactly(int(length[1]) if length else 0)
                writer.write(self._reply(head))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _reply(self, head: bytes) -> bytes:
        if b"/throttled" in head:
            self.refused += 1
            return b"HTTP/1.1 429 Slow\r\nRetry-After: 600\r\nContent-Length: 0\r\n\r\n"
        self.called_at.append(monotonic())
        return b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"

    def most_within(self, seconds: float) -> int:
        """Count the calls in the fullest span of so many seconds."""
        return max(
            sum(1 for at in self.called_at if start <= at < start + seconds) for start in self.called_at
        )


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    made = Endpoint()
    async with (
        await asyncio.start_server(made, "127.0.0.1", 0) as server,
        await asyncio.start_server(made, "127.0.0.1", 0) as other,
    ):
        made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        made.throttled = f"http://127.0.0.1:{other.sockets[0].getsockname()[1]}/throttled"
        yield made


async def test_a_fleet_keeps_to_a_limit_though_the_lane_is_lost(folder: Folder, endpoint: Endpoint) -> None:
    """Four executors, 300 calls a minute, the lane deleted half-way: the rate is never exceeded."""
    folder.write("cases.jsonl", '{"input": "x", "expected": "ok"}\n' * 40)
    run = ("batch", "run", "--workers", "4", "--json", "--dataset", "cases.jsonl")
    async with folder.started(
        *run, "--target", endpoint.url, "--evaluator", "exact", "--rpm-limit", "300"
    ) as running:
        await until(lambda: len(endpoint.called_at) >= 15, TIMEOUT)
        async with Redis.from_url(folder.environ["EVAL_REDIS_URL"]) as redis:
            lanes = [key async for key in redis.scan_iter("eval:lane*")]
            assert lanes
            await redis.delete(*lanes)
        ran = await running.end()
    assert (ran.code, ran.document["passed"]) == (0, 40), ran.stderr
    assert endpoint.most_within(4) <= 5 * (4 + 1) + 1  # a second for calls that were held up on their way


async def test_a_throttled_target_delays_no_other(folder: Folder, endpoint: Endpoint) -> None:
    """One target refuses with Retry-After for ten minutes; all evaluations of the other end meanwhile."""
    folder.write("cases.jsonl", '{"input": "x", "expected": "ok"}\n' * 30)
    targets = ("--target", endpoint.throttled, "--target", endpoint.url)
    limited = ("--rpm-limit", "6000", "--concurrency", "4")
    async with folder.started(*RUN, *targets, "--evaluator", "exact", *limited) as running:
        await until(lambda: folder.ended() == 30, TIMEOUT)
        assert len(endpoint.called_at) == 30
        assert endpoint.refused <= 4  # those in flight at the first refusal: Retry-After shuts the lane
        cancelled = await folder.run("batch", "cancel", folder.batch_id())
        assert cancelled.code == 0, cancelled.stderr
        ran = await running.end()
    assert (ran.code, ran.document["passed"], ran.document["cancelled"]) == (4, 30, 30), ran.stderr


def renamed(event: Event, batch_id: str) -> Event:
    """Move an event to another batch."""
    return replace(event, evaluation_id=f"{batch_id}-{event.evaluation_id}", batch_id=batch_id)


async def outcome(folder: Folder, batch_id: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the counters and scorecards of a batch, without what names it or its moment."""
    ran = await folder.run("batch", "status", batch_id, "--json")
    own = {"batch_id", "name", "accepted_at", "finished_at", "now", "duration_s", "why", "waiting", "rate"}
    counters = {key: value for key, value in ran.document.items() if key not in own}
    ran = await folder.run("batch", "export", batch_id, "-o", "-", "--format", "jsonl")
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    changing = ("evaluation_id", "batch_id")
    return counters, [{key: row[key] for key in row if key not in changing} for row in rows]


async def test_any_order_of_arrival_gives_the_same_tables_and_they_equal_the_log(folder: Folder) -> None:
    """Disordered and doubled by two workers, one of them killed; a forged score is found and corrected."""
    random = Random(11)
    made = [life for _ in range(12) for life in lives(random, most=1)]
    named = [
        [[replace(event, evaluation_id=f"e{number}") for event in events] for events in life]
        for number, life in enumerate(made)
    ]
    async with stored(folder, "--workers", "2", "--gap-timeout", "60") as (here, started):
        disordered = [renamed(event, "disordered") for event in arrivals(random, named)]
        half = len(disordered) // 2
        await here.add_plainly(disordered[:half])
        os.kill(started.children()[0], signal.SIGKILL)
        await here.add_plainly(disordered[half:])
        await here.add_plainly([renamed(event, "ordered") for event in in_order(named)])

        async def compared() -> bool:
            seen = "SELECT count(*) FROM events WHERE evaluation_id LIKE %s"
            counts = [(await here.rows(seen, f"{name}-%"))[0][0] for name in ("disordered", "ordered")]
            return counts == [len({(e.evaluation_id, e.key) for e in disordered})] * 2

        await until(compared, TIMEOUT)
        await until(lambda: _none_pending(here), TIMEOUT)
    assert await outcome(folder, "disordered") == await outcome(folder, "ordered")
    verify = ("replay", "--batch", "disordered", "--verify")
    verified = await folder.run(*verify)
    assert verified.code == 0, verified.stdout
    forged = folder.ask(
        "UPDATE scorecards SET score = 0.123 WHERE evaluation_id ="
        " (SELECT min(evaluation_id) FROM scorecards WHERE batch_id = 'disordered') RETURNING evaluation_id"
    )[0][0]
    found = await folder.run(*verify)
    assert (found.code, forged in found.stdout) == (1, True), found.stdout
    rebuilt = await folder.run("replay", "--batch", "disordered", "--rebuild")
    assert rebuilt.code == 0, rebuilt.stdout
    assert (await folder.run(*verify)).code == 0


async def _none_pending(here: Site) -> bool:
    return await here.pending() == 0


async def test_a_conflict_never_overwrites_and_final_is_final(folder: Folder) -> None:
    """Another body for a stored event is quarantined; a higher attempt reopens no completed evaluation."""
    async with stored(folder) as (here, _):
        ended = history(LIFE, evaluation_id="e", scored=p.Scored(evaluator="judge", score=0.25))
        await here.add_plainly(ended)

        async def completed() -> bool:
            return await here.state("e") == "completed"

        await until(completed)
        forged = history(LIFE, evaluation_id="e", scored=p.Scored(evaluator="judge", score=0.99))
        await here.add_plainly([forged[4], *history("queued:operator", evaluation_id="e", attempt=2)])

        async def refused() -> bool:
            return await here.reasons("e") == ["conflict", "illegal"]

        await until(refused)
    shown = await folder.run("replay", "e", "--from", "postgres", "--json")
    assert '"score":0.25' in shown.stdout.replace(" ", "")
    assert shown.document["state"]["phase"] == "completed"
    listed = await folder.run("quarantine", "list", "--evaluation", "e", "--json")
    reasons = sorted(json.loads(line)["reason"] for line in listed.stdout.splitlines())
    assert reasons == ["conflict", "illegal"]


async def test_acknowledged_means_committed(folder: Folder) -> None:
    """A worker killed in its transaction has acknowledged nothing; the next one stores the events."""
    async with stored(folder, "--workers", "2") as (here, started):
        async with commits_blocked(here):
            await here.add_plainly(history(LIFE, evaluation_id="e"))
            await until(here.has_waiting_commit, TIMEOUT)
            delivered = await here.pending()
            assert delivered > 0
            for child in started.children():
                os.kill(child, signal.SIGKILL)
        await until(lambda: _none_pending(here), TIMEOUT)
        assert await here.state("e") == "completed"


async def test_a_lost_event_is_bridged_on_record(folder: Folder) -> None:
    """After the gap time-out the closing event is applied, and replay, status and verify show the gap."""
    async with stored(folder, "--gap-timeout", "1") as (here, _):
        whole = history(LIFE, evaluation_id="e")
        await here.add_plainly([*whole[:2], *whole[3:]])

        async def completed() -> bool:
            return await here.state("e") == "completed"

        await until(completed)
    status = await folder.run("batch", "status", whole[0].batch_id, "--json")
    assert status.document["bridged"] == 1
    shown = await folder.run("replay", "e")
    assert "bridged" in shown.stdout
    verified = await folder.run("replay", "--batch", whole[0].batch_id, "--verify")
    assert verified.code == 0, verified.stdout
