"""The users of a deployment, on real servers: each has the rights that its service needs, and no others."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, aclosing, asynccontextmanager
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, NoPermissionError, ResponseError
from redis.retry import Retry

from eventlog import keys as log_keys
from eventlog.log import Append, AppendResult, LogUnavailable, Mode
from eventlog.redis_streams import RedisEventLog, connect
from eventlog.scripts import ScriptsMissing, load_missing
from executor.lanes.contract import AcquireRequest, LanePolicy
from executor.lanes.redis_lanes import RedisLanes, lane_key
from scoreline.local.redis_scripts import executor_scripts
from taskqueue import keys
from taskqueue.backends import Backend, Queues, open_queues
from taskqueue.batch_registry import BatchEntry, BatchState
from taskqueue.executor_registry import ExecutorInstance
from taskqueue.tasks import QueueCounts, Task
from tests.builders import BATCH, EVALUATION, history, records
from tests.integration.deployed import Deployment, deployment
from tests.integration.worker import SCORELINE, ended_in_any_case, free_port, scoreline
from tests.waiting import until

AT_ONCE = timedelta(0)
SERVICES = {
    "storage": ("storage-worker", "start", "--no-restart"),
    "coordinator": ("coordinator", "start"),
    "executor": ("worker", "start", "--id", "deployed"),
}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """The servers of a deployment, with a migrated database."""
    with deployment(tmp_path_factory.mktemp("deployed")) as made:
        done = scoreline(
            "db", "migrate", EVAL_POSTGRES_URL_FILE=str(made.secrets / "postgres_migrator_url")
        )
        assert done.returncode == 0, done.stderr
        yield made


@pytest.fixture(autouse=True)
def _fresh(here: Deployment) -> None:
    with Redis.from_url(here.admin_url) as redis:
        redis.flushall()
        redis.acl_log_reset()


@asynccontextmanager
async def connected(here: Deployment, user: str) -> AsyncIterator[tuple[RedisEventLog, Queues]]:
    """Yield the log and the queues with the rights of one user."""
    async with aclosing(connect(here.redis_url(user))) as redis:
        yield RedisEventLog(redis), open_queues(Backend.REDIS, redis)


async def test_a_batch_goes_from_submission_to_scorecards_with_each_service_as_its_user(here, tmp_path):
    """Three services, configured by files, finish a batch without a denied command; tables equal log."""
    dataset = tmp_path / "cases.jsonl"
    dataset.write_text("".join(f'{{"input": "{n}", "expected": "{n}"}}\n' for n in range(20)))
    async with connected(here, "coordinator") as (log, _):  # an executor may start before a coordinator
        await load_missing(log.redis, executor_scripts())
    with ExitStack() as fleet:
        for user, command in SERVICES.items():
            fleet.enter_context(ended_in_any_case([SCORELINE, *command], here.environ(user)))
        submitted = await asyncio.to_thread(_submit, here, dataset)
        assert submitted.returncode == 0, submitted.stderr
        assert json.loads(submitted.stdout)["completed"] == 20
        alive = await asyncio.to_thread(
            scoreline, "worker", "check", "--alive", "--id", "deployed", **here.environ("executor")
        )
        assert "worker deployed is alive" in alive.stdout, alive.stderr
        leads = await asyncio.to_thread(scoreline, "coordinator", "check", **here.environ("coordinator"))
        assert "a coordinator leads" in leads.stdout, leads.stderr
    batch = json.loads(submitted.stdout)["batch_id"]
    verified = scoreline("replay", "--batch", batch, "--verify", **here.environ("reader"))
    assert verified.returncode == 0, verified.stderr
    assert here.denied() == []


def _submit(here: Deployment, dataset: Path) -> "subprocess.CompletedProcess[str]":
    wanted = ("--dataset", str(dataset), "--target", "simulated", "--evaluator", "exact", "--json")
    return scoreline("batch", "run", "--distributed", *wanted, **here.environ("coordinator"))


async def test_an_executor_may_do_all_of_its_work(here):
    """All commands of an executor are allowed, from the claim of an attempt to its own deregistration."""
    await work_through(here)


async def work_through(here: Deployment) -> None:
    """Do all that an executor does, as its user, with scripts that a coordinator has loaded."""
    opening, *rest = history("queued provisioning running completed")
    async with connected(here, "coordinator") as (log, queues):
        await load_missing(log.redis, executor_scripts())
        await queues.batch_registry.upsert(BatchEntry(BATCH, BatchState.RUNNING), b"spec")
        await queues.batch_registry.put_contexts(BATCH, {EVALUATION: b"context"})
        await log.append([Append(EVALUATION, records([opening]), epoch="")])
        await queues.tasks.enqueue_batch(BATCH, [Task(EVALUATION, 1), Task("second", 1), Task("third", 1)])
    async with connected(here, "executor") as (log, queues):
        tasks, me = queues.tasks, "executor-1"
        await queues.executor_registry.heartbeat(ExecutorInstance(me, "executor"))
        assert [each.batch_id for each in await queues.batch_registry.list()] == [BATCH]
        assert await queues.batch_registry.spec(BATCH) == b"spec"
        assert await queues.batch_registry.contexts(BATCH, [EVALUATION]) == [b"context"]
        await queues.batch_registry.set_lanes(BATCH, {"": ["a lane"]})
        first, second, third = await tasks.consume(me, {BATCH: 3}, block=AT_ONCE)
        epoch = await log.epoch(EVALUATION)
        claim, *others = records(rest)
        [claimed] = await log.append([Append(EVALUATION, (claim,), epoch, Mode.CLAIM)])
        assert claimed.results == (AppendResult.OK,)
        assert len(claimed.stream) == 2
        [appended] = await log.append([Append(EVALUATION, tuple(others), epoch)])
        assert appended.results == (AppendResult.OK, AppendResult.OK)
        assert await tasks.extend(me, [first, second]) == [first, second]
        assert await tasks.ack(me, [first]) == 1
        assert await tasks.nack(me, second)
        assert await tasks.dead_letter(me, [third]) == 1
        assert await tasks.claim_stalled(me, [BATCH], idle=AT_ONCE, limit=1) == []
        assert await tasks.counts([BATCH]) == [QueueCounts(ready=1)]
        [granted] = await RedisLanes(log.redis).acquire(
            [AcquireRequest("a lane", me, 0, 1, 1.0, LanePolicy())]
        )
        assert granted.granted == 1
        assert await log.committed([EVALUATION]) == [(0, -1)]
        assert await queues.executor_registry.filter_live([me]) == {me}
        await queues.executor_registry.deregister(me)
    assert here.denied() == []


REFUSED = {
    "executor": [
        ("GET", "other:secret"),
        ("GET", "evaluation"),
        ("SET", keys.spec_key(BATCH), "mine"),
        ("HSET", keys.BATCHES, BATCH, "mine"),
        ("DEL", keys.BATCHES),
        ("HSET", keys.contexts_key(BATCH), EVALUATION, "mine"),
        ("EVALSHA", "0" * 40, "1", keys.BATCHES),
        ("KEYS", "*"),
        ("SCAN", "0"),
        ("FLUSHALL",),
        ("CONFIG", "GET", "*"),
        ("ACL", "LIST"),
        ("MONITOR",),
        ("CLIENT", "LIST"),
        ("PUBLISH", "channel", "word"),
        ("EVAL", "return redis.call('GET', 'other:secret')", "0"),
        ("EVAL", "while true do end", "0"),
        ("SCRIPT", "LOAD", "while true do end"),
        ("FUNCTION", "LOAD", "#!lua name=mine\nredis.register_function('f', function() end)"),
        ("DEL", log_keys.events_key(1, "another")),
        ("UNLINK", log_keys.events_key(1, "another")),
        ("EXPIRE", log_keys.events_key(1, "another"), "1"),
        ("PEXPIRE", log_keys.events_key(1, "another"), "1"),
        ("SET", log_keys.events_key(1, "another"), "gone"),
        ("XDEL", log_keys.events_key(1, "another"), "0-1"),
        ("XTRIM", log_keys.events_key(1, "another"), "MAXLEN", "0"),
        ("DEL", log_keys.wake_key(1)),
        ("DEL", keys.tasks_key(BATCH)),
        ("CLIENT", "KILL", "TYPE", "normal"),
        ("CLIENT", "PAUSE", "1000"),
        ("CLIENT", "NO-EVICT", "on"),
    ],
    "storage": [
        ("GET", "other:secret"),
        ("XADD", keys.tasks_key(BATCH), "*", "id", "x"),
        ("GET", keys.spec_key(BATCH)),
        ("HGETALL", lane_key("a lane")),
        ("GET", keys.executor_key("executor-1")),
        ("KEYS", "*"),
        ("FLUSHALL",),
    ],
    "coordinator": [
        ("GET", "other:secret"),
        ("KEYS", "*"),
        ("FLUSHALL",),
        ("CONFIG", "SET", "maxmemory", "1"),
    ],
    "reader": [
        ("GET", "other:secret"),
        ("SET", keys.spec_key(BATCH), "mine"),
        ("XADD", log_keys.wake_key(0), "*", "id", "x"),
        ("EVALSHA", "0" * 40, "0"),
        ("KEYS", "*"),
        ("FLUSHALL",),
    ],
    "health": [("GET", keys.BATCHES), ("INFO",), ("KEYS", "*")],
}


@pytest.mark.parametrize(
    ("user", "command"),
    [
        pytest.param(user, command, id=f"{user}-{command[0]}-{number}")
        for user, commands in REFUSED.items()
        for number, command in enumerate(commands)
    ],
)
def test_each_user_is_denied_what_its_service_does_not_need(here, user, command):
    """Foreign prefixes and keys, listing keys, and all commands that change the server are denied."""
    url = f"redis://health:none@127.0.0.1:{here.port}/0" if user == "health" else here.redis_url(user)
    with Redis.from_url(url) as redis, pytest.raises(NoPermissionError):
        redis.execute_command(*command)


def test_a_script_has_no_more_rights_than_its_caller(here):
    """Keys that a script computes by itself are checked, too."""
    with Redis.from_url(here.admin_url) as admin:
        admin.set("other:secret", "canary")
        digest = admin.script_load("return redis.call('GET', 'other:' .. ARGV[1])")
    with (
        Redis.from_url(here.redis_url("executor")) as redis,
        pytest.raises(ResponseError, match=r"(?i)permission|ACL"),
    ):
        redis.evalsha(digest, 0, "secret")


async def test_scripts_that_redis_has_lost_are_loaded_by_a_coordinator(here):
    """Until then an executor waits as during an outage of Redis, and loads no script itself."""
    script = next(each for each in executor_scripts() if "XPENDING" in each.source)
    async with connected(here, "executor") as (log, _):
        with Redis.from_url(here.admin_url) as admin:
            admin.script_flush()
        with pytest.raises(ScriptsMissing):
            await script.run(log.redis, [([keys.tasks_key(BATCH)], [])])
        with pytest.raises(LogUnavailable):
            await log.committed([EVALUATION])
        async with connected(here, "coordinator") as (loader, _):
            assert await load_missing(loader.redis, executor_scripts()) > 0
            assert await load_missing(loader.redis, executor_scripts()) == 0
        assert await log.committed([EVALUATION]) == [None]


async def test_a_key_of_the_wrong_type_is_quarantined_by_storage_workers_and_coordinators(here):
    """An executor renames no key of the log and waits; a storage worker and a coordinator move it."""
    fence = log_keys.append_state_key(log_keys.shard_of(EVALUATION, log_keys.DEFAULT_SHARDS), EVALUATION)
    opening = Append(EVALUATION, records(history("queued")), epoch="")
    for user in ("storage", "coordinator"):
        with Redis.from_url(here.admin_url) as admin:
            admin.delete(fence)
            admin.set(fence, "no hash")
        async with connected(here, "coordinator") as (log, _):
            await load_missing(log.redis, executor_scripts())
        async with connected(here, "executor") as (log, _):
            with pytest.raises(LogUnavailable, match="WRONGTYPE"):
                await log.append([opening])
        async with connected(here, user) as (log, _):
            await log.append([opening])
    async with connected(here, "executor") as (log, _):
        assert (await log.append([opening]))[0].results == (AppendResult.DUPLICATE,)
        with Redis.from_url(here.admin_url) as admin:
            admin.set(lane_key("a lane"), "no hash")
        await RedisLanes(log.redis).acquire(
            [AcquireRequest("a lane", "executor-1", 0, 1, 1.0, LanePolicy())]
        )


def test_a_login_without_a_user_name_is_refused(here):
    """The default user is disabled."""
    with (
        Redis(host="127.0.0.1", port=here.port, retry=Retry(NoBackoff(), 0)) as redis,
        pytest.raises(AuthenticationError),
    ):
        redis.ping()


def test_the_reader_login_writes_nothing_and_the_others_only_their_own_tables(here):
    """Logins have the rights of their role; only the migrator creates tables."""
    for user in ("reader", "storage", "coordinator"):
        with psycopg.connect(here.postgres_url(user), autocommit=True) as conn:
            assert conn.execute("SELECT count(*) FROM batches").fetchone() is not None
            for refused in ("DELETE FROM events", "CREATE TABLE mine ()", "DROP TABLE events"):
                with pytest.raises(
                    (psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction)
                ):
                    conn.execute(refused.encode())


async def test_the_health_check_of_a_missing_worker_fails(here):
    """The check reports it in one line and exits with 1."""
    done = await asyncio.to_thread(
        scoreline,
        "worker",
        "check",
        "--alive",
        "--no-sandbox",
        "--id",
        "missing",
        **here.environ("executor"),
    )
    assert (done.returncode, done.stdout) == (1, "Redis answers\n")
    assert "No worker named missing is alive" in done.stderr


async def test_the_health_check_without_a_coordinator_fails(here):
    """The check reports that there is no leader in one line and exits with 1."""
    await until(lambda: "No coordinator leads" in _leader(here), 60)


def _leader(here: Deployment) -> str:
    return scoreline("coordinator", "check", **here.environ("coordinator")).stderr


async def test_a_storage_worker_is_healthy_as_its_user(here):
    """Health, lag and trimming need no rights beyond its own."""
    port = str(free_port())
    command = [SCORELINE, *SERVICES["storage"], "--health-port", port]
    with ended_in_any_case(command, here.environ("storage")):
        await until(lambda: _is_healthy(port), 60)
    assert here.denied() == []


def _is_healthy(port: str) -> bool:
    check = f'import urllib.request as r; r.urlopen("http://127.0.0.1:{port}/health", timeout=5)'
    return subprocess.run(["python3", "-c", check], capture_output=True, check=False).returncode == 0
