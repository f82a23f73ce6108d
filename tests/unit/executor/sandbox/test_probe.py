"""Without a sandbox untrusted code is rejected, unless the operator allows it."""

import stat
from pathlib import Path

import pytest

from eventlog import payloads as p
from executor.contract import ExecutionEnvironment, Permanent, ScoringRequest, TargetRequest
from executor.evaluators.code import CODE, CodeEvaluator
from executor.sandbox.job import SandboxJob, SandboxLimits
from executor.sandbox.probe import probe
from executor.sandbox.sandbox import Sandbox
from executor.targets.command import CommandOptions, CommandTarget

MISSING = "no-such-bubblewrap"


@pytest.fixture
def broken(tmp_path: Path) -> str:
    """A bubblewrap that the system does not permit to work."""
    path = tmp_path / "bwrap"
    path.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_a_missing_bubblewrap_is_named_with_how_to_install_it() -> None:
    """The error names what is missing, how to install it, and how to run without it."""
    sentence = Sandbox(bubblewrap=MISSING).check()
    assert "apt-get install bubblewrap" in sentence
    assert "EVAL_WORKER_ALLOW_UNSANDBOXED=true" in sentence


def test_a_bubblewrap_that_does_not_work_is_quoted(broken: str) -> None:
    """The check quotes bubblewrap's own error and adds the usual cause."""
    sentence = Sandbox(bubblewrap=broken).check()
    assert "No permissions to create new namespace" in sentence
    assert "seccomp" in sentence


async def test_without_a_sandbox_no_code_is_run(tmp_path: Path) -> None:
    """The job fails permanently, before any part of it has run."""
    mark = tmp_path / "mark"
    with pytest.raises(Permanent) as refused:
        await Sandbox(bubblewrap=MISSING).run(SandboxJob(("touch", str(mark)), 5))
    assert refused.value.kind == "no_sandbox"
    assert not mark.exists()


async def test_targets_and_evaluators_pass_the_refusal_on() -> None:
    """It is an error of the executor, not a failed case."""
    sandbox = Sandbox(bubblewrap=MISSING)
    case = p.Case(id="c")
    command = CommandTarget(CommandOptions(command="true"), sandbox=sandbox, workdir=Path())
    with pytest.raises(Permanent, match="no_sandbox"):
        await command.call(TargetRequest("e", "prompt", case, {}))
    made = CODE.make("code", {"program": "{output}"}, ExecutionEnvironment())
    code = CodeEvaluator("code", made._options, sandbox)
    with pytest.raises(Permanent, match="no_sandbox"):
        await code.score(ScoringRequest(case, "pass", {}))


async def test_allowed_in_so_many_words_it_runs_with_limits_and_little_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No variable of this process, a directory of its own, and the caps on time and output."""
    monkeypatch.setenv("SECRET_TOKEN", "canary")
    allowed = Sandbox(allow_unsandboxed=True, bubblewrap=MISSING)
    assert allowed.check() == ""
    shown = await allowed.run(SandboxJob(("sh", "-c", "env; pwd; cat given"), 5, texts={"given": b"text"}))
    assert b"canary" not in shown.stdout
    assert str(Path.cwd()).encode() not in shown.stdout
    assert shown.stdout.endswith(b"text")
    slow = await allowed.run(SandboxJob(("sleep", "60"), 0.2))
    assert slow.killed_by == "time"
    loud = await allowed.run(SandboxJob(("yes",), 5, limits=SandboxLimits(output_kb=1)))
    assert loud.killed_by == "output"
    assert len(loud.stdout) == 1024


async def test_without_a_sandbox_the_originals_are_still_not_written(tmp_path: Path) -> None:
    """A program gets copies of the files that it is given."""
    original = tmp_path / "original.txt"
    original.write_text("as it was")
    allowed = Sandbox(allow_unsandboxed=True, bubblewrap=MISSING)
    outcome = await allowed.run(SandboxJob(("sh", "-c", "echo x > f; cat f"), 5, files={"f": original}))
    assert outcome.stdout == b"x\n"
    assert original.read_text() == "as it was"


def test_the_self_test_is_made_once(broken: str) -> None:
    """A second check returns the cached result."""
    assert probe(broken) is probe(broken)
