"""What commands import: a driver or a framework that a command does not use would cost each call of it.

The real command runs under `python -X importtime`, which lists every module that was imported, on real
servers, so that lazy imports count as well.
"""

import os
import subprocess
import sys

import pytest

SERVICES = frozenset({"faststream", "uvloop", "anthropic", "openai", "coordinator.app", "executor.app"})
REDIS = frozenset({"redis", "opentelemetry.sdk", "psutil"})
EVERY_READER = SERVICES | {"opentelemetry.sdk", "psutil", "yaml", "httpx2"}
FORBIDDEN = {
    ("--help",): EVERY_READER | REDIS | {"psycopg", "pydantic", "asyncio"},
    ("batch", "run", "--help"): EVERY_READER | REDIS | {"psycopg", "asyncio"},
    ("batch", "list"): EVERY_READER | REDIS,
    ("batch", "list", "--json"): EVERY_READER | REDIS,
    ("batch", "dlq", "none"): EVERY_READER | REDIS,
    ("batch", "export", "none", "-o", "none.jsonl"): EVERY_READER | REDIS,
    ("batch", "compare", "none", "none"): EVERY_READER | REDIS,
    ("dataset", "list"): EVERY_READER | REDIS,
    ("db", "migrate"): EVERY_READER | REDIS,
    ("batch", "status", "none"): SERVICES | {"httpx2"},
    ("batch", "run", "-c", "none.yaml"): SERVICES | {"coordinator.coordinator", "httpx2"},
}
"""A command, and the modules that it must not import."""


def imported(output: str) -> set[str]:
    """Return the modules that `-X importtime` reports, with the packages that they are in."""
    rows = (
        line.rpartition("|")[2].strip() for line in output.splitlines() if line.startswith("import time:")
    )
    return {name.rsplit(".", dots)[0] for name in rows for dots in range(name.count(".") + 1)}


@pytest.mark.parametrize("command", FORBIDDEN, ids=" ".join)
def test_a_command_imports_only_what_it_uses(command: tuple[str, ...], postgres_url: str) -> None:
    """Neither drivers of servers that it does not ask, nor what only services use."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("EVAL_")}
    given = {"EVAL_POSTGRES_URL": postgres_url, "EVAL_REDIS_URL": "redis://127.0.0.1:1"}
    argv = [sys.executable, "-X", "importtime", "-m", "scoreline", *command]
    ended = subprocess.run(argv, env=environ | given, capture_output=True, text=True, check=False)
    found = imported(ended.stderr)
    assert "scoreline.cli.main" in found
    assert found & FORBIDDEN[command] == set()
