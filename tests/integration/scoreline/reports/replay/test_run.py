"""`scoreline replay` on real servers: five finished evaluations, and one that still runs."""

import asyncio
import json
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

import pytest
from redis import Redis
from typer.testing import CliRunner

from scoreline.cli.main import app
from scoreline.local.servers import named_servers
from scoreline.reports.replay.origin import Origin
from scoreline.reports.replay.run import ReplayOptions, run_replay
from scoreline.servers.addresses import Servers
from scoreline.settings import load_settings
from tests.databases import fresh_database
from tests.integration.worker import SCORELINE, Site, environment, scoreline, site, worker
from tests.replay_samples import ALPHA, BATCH, BETA, GAP_TIMEOUT, SHORT, attempt, whole, write_samples
from tests.waiting import until

Urls = dict[str, str]


@pytest.fixture(scope="module")
def urls(servers: Servers, migrated_template: str) -> Iterator[Urls]:
    """Servers with the events of all five evaluations."""
    with Redis.from_url(servers.redis_url) as redis:
        redis.flushall()
    with fresh_database(servers.postgres_url, migrated_template) as postgres_url:
        asyncio.run(_write_samples(servers.redis_url, postgres_url))
        yield {"EVAL_REDIS_URL": servers.redis_url, "EVAL_POSTGRES_URL": postgres_url, "COLUMNS": "118"}


async def _write_samples(redis_url: str, postgres_url: str) -> None:
    async with site(redis_url, postgres_url) as here, worker(here, gap_timeout=GAP_TIMEOUT):
        await write_samples(here)


@pytest.fixture
async def here(urls: Urls) -> AsyncIterator[Site]:
    """The same servers, for tests that append events."""
    async with site(urls["EVAL_REDIS_URL"], urls["EVAL_POSTGRES_URL"]) as made:
        yield made


class Replayed(Protocol):
    """Returns the JSON document of an evaluation."""

    def __call__(self, evaluation: str, **options: Any) -> dict[str, Any]: ...


@pytest.fixture
def replayed(urls: Urls, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Replayed:
    """Run the command's function in this process, a second faster than the command."""
    for name, value in urls.items():
        monkeypatch.setenv(name, value)

    def run(evaluation: str, **options: Any) -> dict[str, Any]:
        settings = load_settings()
        with named_servers(settings) as servers:
            run_replay(servers, settings, ReplayOptions(evaluation, as_json=True, **options))
        printed = capsys.readouterr()
        assert printed.err == ""
        found: dict[str, Any] = json.loads(printed.out)
        return found

    return run


def verdicts(found: dict[str, Any]) -> list[list[str]]:
    """Return the verdicts of the events by attempt, without duplicates and conflicts."""
    repeats = {"duplicate", "conflict"}
    return [
        [entry["verdict"] for entry in each["entries"] if entry["verdict"] not in repeats]
        for each in found["attempts"]
    ]


def test_reordered_events_are_shown_by_sequence(urls: Urls) -> None:
    """Rows are sorted by sequence with their arrival ranks; the scorecard comes last."""
    ended = scoreline("replay", "reordered-1", **urls)
    assert (ended.returncode, ended.stderr) == (0, "")
    lines = [" ".join(line.split()) for line in ended.stdout.splitlines()]
    ranks = [line.split()[1] for line in lines if line.split()[2:3] != [] and line[:1].isdigit()]
    assert "state completed, verdict passed" in lines
    assert "Attempt 1 · submitted" in ended.stdout
    assert f"owner {ALPHA}" in ended.stdout
    assert any(
        line.startswith("1 3, after seq 3 provisioning provisioning 400 ms applied") for line in lines
    )
    assert ranks[0] == "1"
    assert "Scorecard passed, score 1" in lines
    assert "exact: 1 passed compared with 'Paris'" in lines


def test_a_bridged_gap_has_its_missing_sequences(replayed: Replayed) -> None:
    """The bridge has the missing range, and the late original that arrived after it."""
    found = replayed("bridged-1", origin=Origin.POSTGRES)
    [only] = found["attempts"]
    assert verdicts(found) == [["applied", "applied", "late", "applied"]]
    assert [(bridge["missing"], bridge["came_late"]) for bridge in only["bridges"]] == [([[2, 4]], [3])]
    assert found["scorecard"]["bridged"] is True


def test_fenced_and_retried_evaluations_have_two_attempts(replayed: Replayed) -> None:
    """Events of a fenced executor are stale; a retried attempt is closed by its own event."""
    fenced, retried = replayed("fenced-1"), replayed("retried-1")
    assert verdicts(fenced) == [["applied"] * 3 + ["stale"] * 3, ["applied"] * 6]
    assert [(each["reason"], each["owner"]) for each in fenced["attempts"]] == [
        ("submitted", ALPHA),
        ("lost", BETA),
    ]
    assert verdicts(retried) == [["applied"] * 4, ["applied"] * 6]
    assert retried["attempts"][1]["reason"] == "retry"


def test_quarantined_entries_are_listed_and_the_evaluation_completes(replayed: Replayed) -> None:
    """Garbage, a conflict and an illegal event are listed with reasons, and the verdict is there."""
    found = replayed("quarantined-1")
    assert sorted(each["reason"] for each in found["quarantine"]) == ["conflict", "garbage", "illegal"]
    assert found["state"]["phase"] == "completed"
    assert verdicts(found) == [
        ["applied", "applied", "applied", "rejected", "applied", "applied", "applied"]
    ]


def test_the_state_as_of_an_earlier_arrival(replayed: Replayed) -> None:
    """As of the second entry only the opening is applied, and the answer waits."""
    found = replayed("reordered-1", at=2)
    assert found["state"] == {"phase": "queued", "attempt": 1, "sequence": 0}
    assert found["as_of"]["waiting"] == [{"attempt": 1, "sequence": 3}]
    assert found["as_of"]["answer"] == {"attempt": 1, "sequence": 3}


def test_two_attempts_are_compared_by_sequence(replayed: Replayed) -> None:
    """Entries are aligned by sequence, followed by the results of both attempts."""
    found = replayed("retried-1@1", other="@2")
    assert [pair["sequence"] for pair in found["pairs"]] == [0, 1, 2, 3, 4, 5]
    assert [pair["differs"] for pair in found["pairs"][2:4]] == [[], ["event"]]
    assert (found["results"]["left"]["state"], found["results"]["right"]["verdict"]) == (
        "retrying",
        "failed",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reorderd-1"], "No evaluation reorderd-1 in Postgres or Redis. Nearest: reordered-1"),
        ([BATCH], f"It is a batch: scoreline replay --batch {BATCH} --summary"),
    ],
    ids=["typo", "batch"],
)
def test_an_unknown_id_is_reported_on_one_line(urls: Urls, arguments: list[str], message: str) -> None:
    """The command exits with 1 and prints the nearest id, or the command for a batch."""
    ended = scoreline("replay", *arguments, **urls)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.count("\n") == 1
    assert message in ended.stderr


def test_an_unreachable_redis_is_a_warning_and_postgres_is_read(urls: Urls) -> None:
    """With Redis unreachable, the history is read from Postgres alone, with a warning."""
    nowhere = "redis://:hunter2@127.0.0.1:1/0"
    ended = scoreline("replay", "retried-1", **urls | {"EVAL_REDIS_URL": nowhere})
    assert ended.returncode == 0
    assert "warning: Redis at redis://:***@127.0.0.1:1/0 does not answer" in ended.stderr
    assert (
        "Postgres alone, because Redis does not answer: what is not stored yet is not shown" in ended.stdout
    )


@asynccontextmanager
async def following(urls: Urls, *arguments: str) -> AsyncIterator[Process]:
    """Run `scoreline replay ... --follow` until it ends, or the block does."""
    process = await asyncio.create_subprocess_exec(
        SCORELINE, "replay", *arguments, "--follow", stdout=PIPE, stderr=PIPE, env=environment(**urls)
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def next_object(process: Process) -> dict[str, Any]:
    """Return the next printed line as JSON."""
    assert process.stdout
    found: dict[str, Any] = json.loads(await asyncio.wait_for(process.stdout.readline(), 20))
    return found


async def test_following_prints_events_as_they_arrive_and_ends_with_the_evaluation(
    urls: Urls, here: Site
) -> None:
    """Updates start before anything is stored, continue over a gap, and end with exit code 0."""
    events = attempt("followed-1", whole(ALPHA, SHORT, 1.0))
    await here.add_plainly(events[:1])
    async with following(urls, "followed-1", "--json") as process:
        first = await next_object(process)
        assert (first["type"], first["stored"]) == ("queued", False)
        await here.add_plainly([events[2]])
        assert (await next_object(process))["verdict"] == "waiting"
        assert (await next_object(process))["kind"] == "gap"
        async with worker(here):
            await here.add_plainly([events[1], *events[3:]])
            out, _ = await asyncio.wait_for(process.communicate(), 20)
    assert process.returncode == 0
    *updates, end = [json.loads(line) for line in out.splitlines()]
    applied = {
        line["sequence"] for line in updates if line["kind"] == "entry" and line["verdict"] == "applied"
    }
    assert applied == {1, 2, 3, 4, 5}
    assert (end["kind"], end["scorecard"]["verdict"]) == ("end", "passed")


async def test_an_interrupt_ends_following_with_130(urls: Urls, here: Site) -> None:
    """SIGINT after the first line ends the command with 130, without a traceback."""
    await here.add_plainly(attempt("followed-2", whole(ALPHA, SHORT, 1.0))[:2])
    async with following(urls, "followed-2") as process:
        assert process.stdout
        line = await asyncio.wait_for(process.stdout.readline(), 20)
        assert b"queued" in line
        process.send_signal(signal.SIGINT)
        _, stderr = await asyncio.wait_for(process.communicate(), 20)
    assert process.returncode == 130
    assert b"Traceback" not in stderr


async def test_an_evaluation_in_the_stream_only_is_shown(here: Site, replayed: Replayed) -> None:
    """Entries that are not stored are read from the stream, with or without Postgres."""
    await here.add_plainly(attempt("unstored-1", whole(ALPHA, SHORT, 1.0))[:2], wake=False)
    both = await asyncio.to_thread(replayed, "unstored-1")
    alone = await asyncio.to_thread(replayed, "unstored-1", origin=Origin.REDIS)
    assert [entry["stored"] for entry in both["attempts"][0]["entries"]] == [False, False]
    assert both["state_once_stored"] == alone["state"]


async def test_an_evaluation_with_quarantined_entries_only_is_shown(here: Site, replayed: Replayed) -> None:
    """The document has no attempts, and lists the quarantined entry."""
    async with worker(here):
        await here.add_fields("garbled-1", {"event": "{"})
        await until(lambda: here.reasons("garbled-1"))
    found = await asyncio.to_thread(replayed, "garbled-1", origin=Origin.POSTGRES)
    assert (found["attempts"], [each["reason"] for each in found["quarantine"]]) == ([], ["garbage"])


def test_usage_errors_exit_with_code_2() -> None:
    """A missing id, conflicting flags and an invalid moment exit with 2, before any query."""
    runner = CliRunner()
    for arguments in (
        [],
        ["e-1", "--at", "soon"],
        ["e-1", "--diff", "e-2", "--follow"],
        ["e-1", "--from", "x"],
    ):
        assert runner.invoke(app, ["replay", *arguments]).exit_code == 2
