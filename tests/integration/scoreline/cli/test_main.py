"""The command line: help without delay, and one clear line for each error."""

import json
import re
import socket
import subprocess
import sys
from asyncio import create_subprocess_exec
from asyncio.subprocess import PIPE
from contextlib import closing
from importlib.metadata import version

import psycopg
import pytest
from redis import Redis

from scoreline.settings import SettingsError, load_settings
from tests.integration.worker import SCORELINE, WAKE_STREAMS, environment, scoreline
from tests.waiting import until

COMMANDS = [
    ["demo"],
    ["storage-worker"],
    ["storage-worker", "start"],
    ["storage-worker", "asyncapi"],
    ["replay"],
    ["quarantine"],
    ["quarantine", "list"],
    ["quarantine", "show"],
    ["db"],
    ["db", "migrate"],
]
NOWHERE = {
    "EVAL_REDIS_URL": "redis://:hunter2@127.0.0.1:1/0",
    "EVAL_POSTGRES_URL": "postgresql://me:hunter2@127.0.0.1:1/scoreline",
}
Urls = dict[str, str]


@pytest.fixture
def urls(redis_url: str, postgres_url: str) -> Urls:
    """Servers that answer, with an empty database."""
    return {"EVAL_REDIS_URL": redis_url, "EVAL_POSTGRES_URL": postgres_url}


@pytest.fixture
def migrated(urls: Urls) -> Urls:
    assert scoreline("db", "migrate", **urls).returncode == 0
    return urls


def complaint(*arguments: str, **environ: str) -> str:
    """The one line with which a command reports its error."""
    ended = scoreline(*arguments, **environ)
    assert ended.returncode == 1, ended
    assert ended.stdout == ""
    assert ended.stderr.count("\n") == 1, ended.stderr
    assert "hunter2" not in ended.stderr
    return ended.stderr


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_of_every_command_explains_it(command: list[str]) -> None:
    """The help of each command has one sentence on its purpose, and its usage."""
    ended = scoreline(*command, "--help")
    assert ended.returncode == 0
    assert f"Usage: scoreline {' '.join(command)}" in ended.stdout
    sentence = next(line for line in ended.stdout.splitlines()[2:] if line.strip())
    assert len(sentence.split()) >= 3


def test_help_lists_every_command() -> None:
    """`--help` and a call without arguments list every command."""
    for arguments in (["--help"], []):
        message = scoreline(*arguments)
        assert all(command[0] in message.stdout + message.stderr for command in COMMANDS)


def test_help_imports_no_heavy_library() -> None:
    """Help loads neither the broker nor the database driver."""
    program = (
        "import sys\nfrom scoreline.cli.main import app\n"
        "try:\n    app(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'faststream', 'psycopg', 'redis', 'pydantic'} & set(sys.modules)\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)"
    )
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    assert ended.returncode == 0, ended.stderr


def test_version_is_that_of_the_package() -> None:
    """`--version` prints the version, and nothing else."""
    assert scoreline("--version").stdout.strip() == version("scoreline")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("EVAL_SHARD", "4", "EVAL_SHARD is not a setting of scoreline. Did you mean EVAL_SHARDS?"),
        ("EVAL_GAP_TIMOUT", "4", "Did you mean EVAL_GAP_TIMEOUT?"),
        ("EVAL_XYZZY", "4", "EVAL_XYZZY is not a setting of scoreline."),
        ("EVAL_SHARDS", "many", "EVAL_SHARDS: "),
        ("EVAL_SHARDS", "0", "EVAL_SHARDS: "),
        ("EVAL_ORDERING", "random", "EVAL_ORDERING: Input should be 'strict' or 'degraded'"),
        ("EVAL_GAP_TIMEOUT", "-1", "EVAL_GAP_TIMEOUT: "),
        ("EVAL_LOG_LEVEL", "LOUD", "EVAL_LOG_LEVEL: "),
    ],
)
def test_bad_setting_is_named(name: str, value: str, message: str) -> None:
    """An unknown or invalid setting is an error that names it."""
    with pytest.raises(SettingsError, match=re.escape(message)):
        load_settings({name: value})


def test_bad_setting_is_one_line_and_exit_code_1() -> None:
    """The command prints the error of the settings, and nothing else."""
    message = complaint("quarantine", "list", EVAL_SHARD="4")
    assert message == "error: EVAL_SHARD is not a setting of scoreline. Did you mean EVAL_SHARDS?\n"


@pytest.mark.parametrize("flags", [["--ordering", "random"], ["--gap-timeout", "-1"]], ids=" ".join)
def test_bad_flag_is_explained_in_few_words(flags: list[str]) -> None:
    """A flag out of its range is explained, without a traceback."""
    ended = scoreline("storage-worker", "start", *flags, **NOWHERE)
    assert ended.returncode in {1, 2}
    assert "Traceback" not in ended.stderr
    assert flags[0].strip("-").replace("-", "_") in ended.stderr.lower().replace("-", "_")


@pytest.mark.parametrize(
    "command", [["quarantine", "list"], ["storage-worker", "start"], ["demo"]], ids=" ".join
)
def test_missing_redis_is_one_clear_line(command: list[str]) -> None:
    """Connection refused: the address without its password, the reason, and what to do."""
    message = complaint(*command, **NOWHERE)
    assert "Redis at redis://:***@127.0.0.1:1/0 does not answer (connection refused)" in message


@pytest.mark.parametrize("command", [["quarantine", "list"], ["db", "migrate"]], ids=" ".join)
def test_missing_postgres_is_one_clear_line(command: list[str], redis_url: str) -> None:
    """The line is like that for Redis; migrating needs no Redis at all."""
    message = complaint(*command, **NOWHERE | {"EVAL_REDIS_URL": redis_url})
    assert "PostgreSQL at postgresql://me:***@127.0.0.1:1/scoreline does not answer" in message


@pytest.mark.parametrize(
    "command", [["quarantine", "list"], ["storage-worker", "start"], ["demo"]], ids=" ".join
)
def test_database_without_tables_names_the_command_to_run(command: list[str], urls: Urls) -> None:
    """An empty database has another error than a missing one, with the remedy."""
    assert "Run: scoreline db migrate" in complaint(*command, **urls)


def test_migrating_twice_is_harmless_and_needs_no_redis(postgres_url: str) -> None:
    """The second run reports that there is nothing to do."""
    first = scoreline("db", "migrate", EVAL_POSTGRES_URL=postgres_url)
    second = scoreline("db", "migrate", EVAL_POSTGRES_URL=postgres_url)
    assert (first.returncode, second.returncode) == (0, 0), first.stderr
    assert "applied core" in first.stderr
    assert second.stderr == "The database is up to date.\n"


def test_other_number_of_shards_is_refused(migrated: Urls) -> None:
    """The command does not read from the wrong streams, and names the right number."""
    message = complaint("storage-worker", "start", **migrated, EVAL_SHARDS="8")
    assert "was created for 4 shards, EVAL_SHARDS is 8. Set EVAL_SHARDS=4" in message


@pytest.fixture
def quarantined(migrated: Urls) -> Urls:
    with psycopg.connect(migrated["EVAL_POSTGRES_URL"], autocommit=True) as conn:
        for key in ("abc1", "abc2"):
            conn.execute(
                "INSERT INTO quarantine (id, reason, detail, entry_id, body)"
                " VALUES (%s, 'garbage', '[red]not markup[/red]', '1-0', '{}')",
                [key],
            )
    return migrated


def test_quarantine_show_wants_one_entry(quarantined: Urls) -> None:
    """An unknown id and an ambiguous one have different errors."""
    assert "Nothing in quarantine has an id that begins with 'xyz'" in complaint(
        "quarantine", "show", "xyz", **quarantined
    )
    assert "More than one id begins with 'abc'; give more of it" in complaint(
        "quarantine", "show", "abc", **quarantined
    )
    shown = scoreline("quarantine", "show", "abc1", **quarantined)
    assert "[red]not markup[/red]" in shown.stdout
    listed = scoreline("quarantine", "list", "--json", "--limit", "1", **quarantined)
    assert len([json.loads(line) for line in listed.stdout.splitlines()]) == 1


def test_empty_quarantine_is_reported_on_stderr(migrated: Urls) -> None:
    """Standard output stays empty for machines; standard error has a sentence for people."""
    ended = scoreline("quarantine", "list", **migrated)
    assert (ended.returncode, ended.stdout) == (0, "")
    assert "empty" in ended.stderr


def test_asyncapi_document_is_printed_without_servers() -> None:
    """The document is generated from the code alone."""
    document = json.loads(scoreline("storage-worker", "asyncapi").stdout)
    assert len(document["channels"]) == 4


async def test_health_port_in_use_is_an_error(migrated: Urls) -> None:
    """A worker that cannot serve its health endpoint does not start."""
    with socket.socket() as taken, closing(Redis.from_url(migrated["EVAL_REDIS_URL"])) as redis:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        command = [SCORELINE, "storage-worker", "start", "--no-restart", "--health-port", port]
        process = await create_subprocess_exec(*command, stderr=PIPE, env=environment(**migrated))
        await until(lambda: process.returncode is not None or redis.exists(*WAKE_STREAMS) == 4, 60)
        process.terminate()
        _, message = await process.communicate()
    assert port in message.decode()
