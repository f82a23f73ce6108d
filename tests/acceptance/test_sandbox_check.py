"""`scoreline sandbox check`, and the self-test at the start of an executor, through the command line."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from executor.sandbox.bubblewrap_options import PrivilegeMode
from tests.acceptance.batch_commands import Folder
from tests.integration.sandboxed import PREFIXES, PRIVILEGE_MODES, needs_sandbox
from tests.integration.worker import SCORELINE, environment

BUBBLEWRAP = shutil.which("bwrap", path=os.defpath) or "bwrap"
HIDDEN = (BUBBLEWRAP, "--dev-bind", "/", "/", "--ro-bind", "/dev/null", BUBBLEWRAP)
"""What a command line begins with so that it finds no bubblewrap."""
CHECKS = {
    "network",
    "address families",
    "files",
    "environment",
    "other processes",
    "first process",
    "privileges",
    "limits",
}
LIMITS = {
    "memory",
    "shared memory",
    "address space",
    "processes",
    "disk",
    "inodes",
    "open files",
    "time",
    "processor time",
    "output",
    "end of a run",
}


def run(*command: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end."""
    return subprocess.run(
        command, env=environment(**environ), capture_output=True, text=True, timeout=100, check=False
    )


def log_lines(stderr: str, words: str) -> list[dict[str, Any]]:
    """Log lines whose message has these words."""
    lines = [json.loads(line) for line in stderr.splitlines() if line.startswith("{")]
    return [line for line in lines if words in str(line)]


@needs_sandbox
@pytest.mark.timeout(120)
@pytest.mark.parametrize("privilege_mode", PRIVILEGE_MODES)
def test_every_wall_and_limit_is_tried_and_holds(privilege_mode: PrivilegeMode) -> None:
    """On each privilege mode the check names it, tries every check and limit, and ends with exit code 0."""
    checked = run(*PREFIXES[privilege_mode], SCORELINE, "sandbox", "check", "--json")
    document = json.loads(checked.stdout)
    assert [check for check in document["checks"] if not check["held"]] == []
    assert {check["name"] for check in document["checks"]} == CHECKS | LIMITS
    assert all(check["enforced_by"] for check in document["checks"])
    assert (checked.returncode, document["footing"], document["held"]) == (
        0,
        privilege_mode.value,
        True,
    ), checked.stderr


@needs_sandbox
def test_without_a_sandbox_the_check_names_what_to_install() -> None:
    """Exit code 1, the reason, and what to type, for people and for programs."""
    checked = run(*HIDDEN, SCORELINE, "sandbox", "check", "--json")
    document = json.loads(checked.stdout)
    assert (checked.returncode, document["footing"], document["held"], document["checks"]) == (
        1,
        None,
        False,
        [],
    )
    for words in ("apt-get install bubblewrap", "scoreline sandbox check", "EVAL_WORKER_ALLOW_UNSANDBOXED"):
        assert words in checked.stderr, checked.stderr


@needs_sandbox
def test_a_cgroup_that_can_not_be_used_is_named() -> None:
    """All isolation checks pass, and untrusted code is still refused: the reason names the cgroup."""
    checked = run(SCORELINE, "sandbox", "check", "--json", EVAL_WORKER_CGROUP="/no/such/cgroup")
    document = json.loads(checked.stdout)
    assert {check["name"] for check in document["checks"] if check["held"]} == CHECKS
    assert (checked.returncode, document["held"]) == (1, False)
    assert "/no/such/cgroup" in document["trouble"]


@needs_sandbox
@pytest.mark.timeout(120)
def test_an_executor_tests_its_sandbox_at_its_start(
    tmp_path: Path, redis_url: str, postgres_url: str
) -> None:
    """One log line has privilege mode and mechanisms; else the reason and a command."""
    environ = Folder(tmp_path, redis_url, postgres_url).environ
    start = (SCORELINE, "worker", "start", "--once")
    [passed] = log_lines(run(*start, **environ).stderr, "sandbox self-test")
    assert passed["privilege_mode"] in {privilege_mode.value for privilege_mode in PRIVILEGE_MODES}
    assert set(passed["isolation"]) == CHECKS
    [failed] = log_lines(run(*HIDDEN, *start, **environ).stderr, "sandbox self-test")
    assert "apt-get install bubblewrap" in failed["reason"]
    assert failed["command"] == "scoreline sandbox check"
    environ["EVAL_WORKER_CGROUP"] = "/no/such/cgroup"
    [refused] = log_lines(run(*start, **environ).stderr, "sandbox self-test")
    assert "failed" in refused["message"], refused
    assert "/no/such/cgroup" in refused["reason"]
