"""Servers that cannot be used: every command reports it in one line, with what to do, and no traceback."""

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from redis import Redis
from redis.exceptions import ConnectionError as NotYet

from tests.integration.worker import free_port, scoreline
from tests.waiting import until

REDIS = shutil.which("redis-server")
needs_redis = pytest.mark.skipif(REDIS is None, reason="redis-server is not installed (apt: redis-server)")
RUN = ("batch", "run", "--dataset", "cases.jsonl", "--target", "simulated", "--evaluator", "exact")


@contextmanager
def redis_server(folder: Path, *options: str) -> Iterator[str]:
    """Run Debian's Redis, and return its URL."""
    port = free_port()
    conf = folder / "redis.conf"
    own = f"port {port}\nbind 127.0.0.1\nsave ''\ndir {folder}\n"
    if "--cluster-enabled" in options:
        own += f"cluster-port {free_port()}\n"  # else ten thousand above the port, which may be too high
    conf.write_text(own, encoding="utf-8")
    with subprocess.Popen([REDIS or "", str(conf), *options], stdout=subprocess.DEVNULL) as process:
        try:
            with Redis(port=port) as client:
                asyncio.run(until(lambda: _answers(client), 60))
            yield f"redis://127.0.0.1:{port}"
        finally:
            process.kill()


def _answers(client: "Redis") -> bool:
    try:
        return bool(client.ping())
    except NotYet:
        return False


def refused(*arguments: str, **environ: str) -> str:
    """Run a command that must end with code 1 and one line; returns the line."""
    ran = scoreline(*arguments, **environ)
    assert ran.returncode == 1, (arguments, ran.stdout, ran.stderr)
    lines = [line for line in ran.stderr.splitlines() if line.strip()]
    assert len(lines) == 1, (arguments, ran.stderr)
    assert lines[0].startswith("error: ")
    return lines[0]


@needs_redis
@pytest.mark.parametrize(
    ("option", "word"), [("--cluster-enabled yes", "part of a cluster"), ("--sentinel", "is a Sentinel")]
)
def test_cluster_and_sentinel_are_refused_at_start_by_every_command(
    option: str, word: str, tmp_path: Path, postgres_url: str
) -> None:
    """Neither is a usable Redis, and `worker check` reports it like all others."""
    cases = tmp_path / "cases.jsonl"
    cases.write_text('{"input": "1", "expected": "1"}\n')
    commands: list[tuple[str, ...]] = [("worker", "check", "--no-sandbox"), ("worker", "start", "--once")]
    if "cluster" in option:
        run = (*RUN[:3], str(cases), *RUN[4:])
        commands += [("coordinator", "start"), ("storage-worker", "start"), run]
    with redis_server(tmp_path, *option.split()) as url:
        for arguments in commands:
            output = refused(*arguments, EVAL_REDIS_URL=url, EVAL_POSTGRES_URL=postgres_url)
            assert word in output


@pytest.fixture
def roles(postgres_url: str) -> Iterator[dict[str, str]]:
    """URLs of a role that may only connect, and of one that may only read."""
    names = {"weak": "scoreline_test_weak", "reader": "scoreline_test_reader"}
    with psycopg.connect(postgres_url, autocommit=True) as conn:
        for name in names.values():
            conn.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(name)))
            conn.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(name)))
        conn.execute("GRANT scoreline_reader TO scoreline_test_reader")
        yield {kind: _as(postgres_url, name) for kind, name in names.items()}
        for name in names.values():
            conn.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def _as(url: str, role: str) -> str:
    made = psycopg.conninfo.conninfo_to_dict(url)
    return f"postgresql://{role}@/{made['dbname']}?host={made['host']}&port={made.get('port', 5432)}"


def test_missing_privileges_are_named_and_no_outage_is_claimed(
    roles: dict[str, str], redis_url: str, tmp_path: Path
) -> None:
    """A weak role and a reader: what is denied, to whom, and which role to use."""
    cases = tmp_path / "cases.jsonl"
    cases.write_text('{"input": "1", "expected": "1"}\n')
    run = (*RUN[:3], str(cases), *RUN[4:], "--distributed")
    table = {
        ("weak", ("db", "migrate")): "Migrate as the owner of the database",
        ("weak", ("dataset", "import", str(cases))): "PostgreSQL denies this role something",
        ("weak", ("batch", "list")): "PostgreSQL denies this role something",
        ("reader", ("dataset", "import", str(cases))): "permission denied for table datasets",
        ("reader", run): "GRANT scoreline_coordinator TO scoreline_test_reader",
        ("reader", ("coordinator", "start")): "GRANT scoreline_coordinator TO scoreline_test_reader",
        ("reader", ("storage-worker", "start")): "GRANT scoreline_storage TO scoreline_test_reader",
    }
    for (role, arguments), expected in table.items():
        output = refused(*arguments, EVAL_REDIS_URL=redis_url, EVAL_POSTGRES_URL=roles[role])
        assert expected in output, (arguments, output)
        assert "went away" not in output
        assert "disk" not in output
