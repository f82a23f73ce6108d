"""Attacks on the sandbox through the command line, in either privilege mode: contained, no process left."""

import json
import socket
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from executor.sandbox.bubblewrap_options import PrivilegeMode
from tests.acceptance.batch_commands import Folder
from tests.integration.executor.sandbox.test_resource_monitor import EMPTY_FILES, SHARED_MEMORY
from tests.integration.sandboxed import PREFIXES, PRIVILEGE_MODES, needs_sandbox
from tests.integration.takeover import TAKEOVER

pytestmark = needs_sandbox

RUN = ("batch", "run", "--workers", "1", "--json")
SPEC = {
    "name": "attacks",
    "dataset": "cases.jsonl",
    "prompts": ["{input}"],
    "evaluators": ["exact"],
    "retries": 0,
}


@pytest.fixture(params=PRIVILEGE_MODES)
def folder(request: pytest.FixtureRequest, tmp_path: Path, redis_url: str, postgres_url: str) -> Folder:
    """A folder whose commands build their sandboxes in the given privilege mode."""
    privilege_mode: PrivilegeMode = request.param
    folder = Folder(tmp_path, redis_url, postgres_url)
    folder.prefix = PREFIXES[privilege_mode]
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


FAMILIES = """
import socket
kinds = (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET, socket.SOCK_RAW)
made = set()
for family in range(64):
    for make in (socket.socket, socket.socketpair):
        for kind in kinds:
            try:
                make(family, kind)
                made.add(family)
            except OSError:
                pass
print(sorted(made))
"""
LOADER = """
import glob
traces = "".join(open(path).read() for path in glob.glob("/tmp/trace.*"))
print("python" in traces, "prlimit" in traces, "setpriv" in traces)
"""
VARIABLES = {"LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": "/tmp/trace"}
"""The dynamic loader obeys these in every program that they reach, as it does LD_PRELOAD."""


def write_batch(
    folder: Folder, cases: dict[str, tuple[str, str]], token: str = "-", **options: Any
) -> None:
    """Write a batch of programs: id → program and what it is expected to print."""
    lines = [
        json.dumps({"id": id_, "program": program, "expected": expected, "token": token, "input": ""})
        for id_, (program, expected) in cases.items()
    ]
    folder.write("cases.jsonl", "\n".join(lines))
    target = {
        "type": "command",
        "command": ["python3", "-I", "-S", "-c", "{program}", "{token}"],
        **options,
    }
    folder.write("scoreline.yaml", json.dumps({**SPEC, "targets": [target]}))


async def test_attacks_are_contained(folder: Folder) -> None:
    """Programs that outlive their case, forge an exit code, steer privileged tools or hoard memory."""
    token = f"outlives-{uuid4().hex}"
    cases = {
        "takeover": (TAKEOVER, "contained"),
        "address families": (FAMILIES, "[1, 2]"),
        "loader": (LOADER, "True False False"),
        "shared memory": (SHARED_MEMORY, "True"),
        "empty files": (EMPTY_FILES, "contained"),
    }
    write_batch(folder, cases, token, env=VARIABLES, limits={"memory_mb": 64, "disk_mb": 8})
    ran = await folder.run(*RUN)
    assert ran.stdout, ran.stderr
    assert (ran.document["passed"], ran.document["dead_letters"]) == (3, 2), ran.stdout
    errors = folder.ask("SELECT error->>'message' FROM scorecards WHERE status = 'failed' ORDER BY 1")
    assert errors == [("the program ended with 7",), ("the program made more than 16384 files",)]
    assert not processes(token)


def listening(path: Path) -> socket.socket:
    """A socket with a listener, in a folder of its own."""
    path.parent.mkdir(mode=0o755)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    return listener


async def test_the_data_directory_and_live_sockets_are_not_bound(
    tmp_path: Path, redis_url: str, postgres_url: str
) -> None:
    """Refused before anything starts; where the check is left out, each case ends with the reason."""
    folder = Folder(tmp_path, redis_url, postgres_url)
    files = {"all": "../d", "tools": "tools"}
    write_batch(folder, {"x": ("print(1)", "1")}, "-", files=files)
    folder.data.mkdir(mode=0o755, exist_ok=True)
    with listening(folder.root / "tools" / "s"):
        refused = await folder.run(*RUN)
        ran = await folder.run(*RUN, "--no-preflight")
    output = " ".join(refused.stderr.split())
    assert refused.code == 1
    assert f"lies within Scoreline's data directory {folder.data}" in output
    assert f"contains the live socket {folder.root}/tools/s" in output
    assert ran.document["dead_letters"] == 1, ran.stdout
    [(error,)] = folder.ask("SELECT error::text FROM scorecards")
    assert "set EVAL_DATA_DIR to another directory" in error
