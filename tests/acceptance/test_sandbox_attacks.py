"""Attacks on the sandbox through the command line, on either footing: all contained, no process left."""

import json
from pathlib import Path
from uuid import uuid4

import pytest

from executor.sandbox.walls import Footing
from tests.acceptance.batch_commands import Folder
from tests.integration.sandboxed import FOOTINGS, PREFIXES, needs_sandbox
from tests.integration.takeover import TAKEOVER

pytestmark = needs_sandbox

RUN = ("batch", "run", "--workers", "1", "--json")
SPEC = {
    "name": "attacks",
    "dataset": "cases.jsonl",
    "prompts": ["{input}"],
    "evaluators": ["exact"],
    "retries": 0,
    "targets": [{"type": "command", "command": ["python3", "-I", "-S", "-c", "{program}", "{token}"]}],
}


@pytest.fixture(params=FOOTINGS)
def folder(request: pytest.FixtureRequest, tmp_path: Path, redis_url: str, postgres_url: str) -> Folder:
    """A folder whose commands build their sandboxes on the given footing."""
    footing: Footing = request.param
    folder = Folder(tmp_path, redis_url, postgres_url)
    folder.prefix = PREFIXES[footing]
    return folder


def processes(token: str) -> list[str]:
    """The processes whose command lines have this word."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if token.encode() in path.read_bytes():
                found.append(path.parent.name)
        except OSError:
            continue
    return found


async def test_a_program_outlives_neither_its_case_nor_its_executor(folder: Folder) -> None:
    """It tries to take over the sandbox's first process: its exit code stays 7, and no process is left."""
    token = f"outlives-{uuid4().hex}"
    case = {"id": "takeover", "program": TAKEOVER, "token": token, "input": "", "expected": "contained"}
    folder.write("cases.jsonl", json.dumps(case))
    folder.write("scoreline.yaml", json.dumps(SPEC))
    ran = await folder.run(*RUN)
    assert ran.stdout, ran.stderr
    assert (ran.told["dead_letters"], ran.told["completed"]) == (1, 0), ran.stderr
    [(error,)] = folder.ask("SELECT error::text FROM scorecards")
    assert "the program ended with 7" in error
    assert not processes(token)
