"""The outcome of a sandboxed run: exit codes, output, files, input and the reason of a kill."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest
import uvloop

from executor.contract import Transient
from executor.sandbox.job import SandboxJob, SandboxLimits
from executor.sandbox.probe import ProbeResult
from executor.sandbox.sandbox import Sandbox
from tests.integration.sandboxed import needs_sandbox, python

pytestmark = needs_sandbox


async def test_a_program_ends_with_its_exit_code_and_its_output() -> None:
    """Both streams are kept apart."""
    outcome = await Sandbox().run(SandboxJob(("sh", "-c", "echo out; echo err >&2; exit 3"), 5))
    assert (outcome.exit_code, outcome.stdout, outcome.stderr) == (3, b"out\n", b"err\n")
    assert outcome.killed_by is None


async def test_standard_input_is_what_was_given_and_then_ends() -> None:
    """Also where it is larger than a pipe, and where the program does not read it."""
    text = b"x" * 300_000
    received = await Sandbox().run(SandboxJob(("cat",), 5, stdin=text))
    assert received.stdout == text
    ignored = await Sandbox().run(SandboxJob(("true",), 5, stdin=text))
    assert ignored.exit_code == 0
    empty = await Sandbox().run(SandboxJob(("cat",), 5))
    assert (empty.exit_code, empty.stdout) == (0, b"")


INPUT_HABITS = {
    "ignores it": "echo done",
    "closes it and works on": "exec 0<&-; sleep 0.05; echo done",
    "reads one byte": "head -c 1 >/dev/null; echo done",
    "closes everything": "echo done; exec 0<&- 1>&- 2>&-",
}


@pytest.mark.parametrize("runner", [uvloop.run, asyncio.run])
@pytest.mark.parametrize("allow_unsandboxed", [False, True])
def test_a_program_need_not_read_its_input(
    runner: Callable[[Coroutine[object, object, None]], None],
    allow_unsandboxed: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On either event loop, with and without a sandbox: a closed pipe is no error, whatever its size."""
    if allow_unsandboxed:
        monkeypatch.setattr("executor.sandbox.sandbox.probe", lambda _: ProbeResult(None, "none here"))
    sandbox = Sandbox(allow_unsandboxed=allow_unsandboxed)
    jobs = [
        SandboxJob(("sh", "-c", script), 20, stdin=b"x" * size)
        for script in INPUT_HABITS.values()
        for size in (1, 300_000)
        for _ in range(4)
    ]

    async def run_all() -> None:
        outcomes = await asyncio.gather(*map(sandbox.run, jobs))
        assert [each.stdout for each in outcomes] == [b"done\n"] * len(jobs)
        assert {each.exit_code for each in outcomes} == {0}

    runner(run_all())


async def test_the_kernel_limits_the_processes_of_a_program() -> None:
    """RLIMIT_NPROC is what the job allows: a fork beyond it fails in the program itself."""
    program = "import resource; print(*resource.getrlimit(resource.RLIMIT_NPROC))"
    outcome = await Sandbox().run(python(program, limits=SandboxLimits(processes=37)))
    assert (outcome.stdout, outcome.exit_code) == (b"37 37\n", 0), outcome.stderr


async def test_the_environment_is_minimal(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable is inherited; those of the job are set."""
    monkeypatch.setenv("SECRET_TOKEN", "canary")
    outcome = await Sandbox().run(SandboxJob(("env",), 5, env={"GIVEN": "yes"}))
    names = {line.partition("=")[0] for line in outcome.stdout.decode().splitlines()}
    assert names - {"PWD", "OLDPWD"} == {"PATH", "HOME", "TMPDIR", "LANG", "GIVEN"}


async def test_a_file_of_the_host_can_be_read_and_run(tmp_path: Path) -> None:
    """It lies in the working directory, under the name that the job gives it."""
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\necho ran $1\n")
    script.chmod(0o755)
    outcome = await Sandbox().run(SandboxJob(("./bin/solve", "it"), 5, files={"bin/solve": script}))
    assert outcome.stdout == b"ran it\n"


async def test_a_program_that_is_not_there_has_the_exit_code_of_a_shell() -> None:
    """It is 127, with a message on standard error."""
    outcome = await Sandbox().run(SandboxJob(("no-such-program",), 5))
    assert outcome.exit_code == 127
    assert b"no-such-program" in outcome.stderr


async def test_a_sandbox_that_can_not_be_built_is_a_fault_and_no_outcome(tmp_path: Path) -> None:
    """Bubblewrap's error is not taken for the program's output."""
    with pytest.raises(Transient, match="gone"):
        await Sandbox().run(SandboxJob(("true",), 5, files={"gone": tmp_path / "gone"}))


async def test_a_signal_is_distinguished_from_an_exit() -> None:
    """A crash is a signal, and standard error has nothing but the program's output."""
    crashed = await Sandbox().run(SandboxJob(("sh", "-c", "kill -ABRT $$"), 5))
    assert (crashed.exit_code, crashed.killed_by, crashed.stderr) == (134, "signal", b"")


async def test_output_is_cut_at_the_cap_to_the_byte() -> None:
    """Both streams together are never more than allowed."""
    outcome = await Sandbox().run(SandboxJob(("yes",), 5, limits=SandboxLimits(output_kb=3)))
    assert outcome.killed_by == "output"
    assert len(outcome.stdout) == 3 * 1024


async def test_output_of_exactly_the_cap_is_allowed() -> None:
    """The limit may be reached exactly."""
    outcome = await Sandbox().run(
        SandboxJob(("head", "-c", "1024", "/dev/zero"), 5, limits=SandboxLimits(output_kb=1))
    )
    assert (outcome.exit_code, outcome.killed_by, len(outcome.stdout)) == (0, None, 1024)


async def test_concurrent_runs_are_isolated() -> None:
    """Each has its own directory, although all have the same name."""
    program = ("sh", "-c", "cat > f; sleep 0.1; cat f; ls")
    jobs = (SandboxJob(program, 20, stdin=str(number).encode()) for number in range(20))
    outcomes = await asyncio.gather(*map(Sandbox().run, jobs))
    assert [outcome.stdout for outcome in outcomes] == [f"{number}f\n".encode() for number in range(20)]


async def test_no_descriptor_is_left_open() -> None:
    """A long-lived executor does not run out of them."""
    await Sandbox().run(SandboxJob(("true",), 5))
    before = sorted(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for _ in range(5):
        await Sandbox().run(SandboxJob(("cat",), 5, stdin=b"x", texts={"f": b"x"}))
    assert sorted(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


async def test_a_program_sees_nothing_of_how_it_was_started(tmp_path: Path) -> None:
    """Neither paths of the host nor descriptors beyond the usual three."""
    shown = tmp_path / "shown.txt"
    shown.write_text("x")
    look = "cat /proc/1/cmdline /proc/1/environ 2>/dev/null; ls /proc/self/fd | wc -l"
    outcome = await Sandbox().run(SandboxJob(("sh", "-c", look), 5, files={"shown.txt": shown}))
    assert str(tmp_path).encode() not in outcome.stdout
    assert outcome.stdout.endswith(b"4\n")  # the fourth is the listing itself
