"""The command line: help without delay, and one clear line for each error."""

import re
import subprocess
import sys
from importlib.metadata import version

import pytest

from scoreline.settings import SettingsError, load_settings
from tests.integration.scoreline.cli.commands import complaint
from tests.integration.worker import environment, scoreline

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
