"""Run the corpus in one privilege mode, in a process of its own.

python -m tests.escapes.privilege mode RIGHTS FOLDER WORD CGROUP

The process takes the place of an executor: it leads a session with a terminal, holds a secret in its
environment, and adopts every orphan below it. For the privilege mode of an unprivileged user namespace it
gives up root for good, after its imports, for another user may not be able to read this tree. It prints one
JSON object: an outcome for each program, and what was left behind.
"""

import asyncio
import json
import os
import sys
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import monotonic

from executor.contract import CallFault
from executor.sandbox.job import SandboxOutcome
from executor.sandbox.probe import probe
from executor.sandbox.reports import ReportListener, listening
from executor.sandbox.sandbox import Sandbox
from scoreline.formatting import printable
from tests.escapes.corpus import CORPUS
from tests.escapes.host import AttackedHost, attacked_host, controlling_terminal
from tests.escapes.program import TIME, EscapeProgram, ExecutorRights
from tests.escapes.residue import (
    MEGABYTE,
    become_subreaper,
    living_descendants,
    peak_memory,
    take_inventory,
)

UNPRIVILEGED = 10_001
UNAVAILABLE = "this privilege mode is not available here"
AT_ONCE = 4
GRACE, HANGS = 5, 20
"""Seconds beyond its limit that a run may take to end, and after which it counts as hung."""
UNTIL_CANCELLED = 0.4
TIME_FACTORS = (1, 8)
"""Factors of a program's time: on a busy machine a first run may end before the program has begun."""
NEXT_RUN = """
processes = [name for name in os.listdir("/proc") if name.isdigit()]
print(sorted(os.listdir("/tmp")), os.listdir("/dev/shm"), len(processes))
"""


@dataclass(frozen=True)
class ProgramOutcome:
    """How one program of the corpus ended in one privilege mode."""

    name: str
    problems: list[str]
    ended_by: str
    seconds: float


async def run_corpus(programs: list[EscapeProgram], host: AttackedHost) -> list[ProgramOutcome]:
    """Run programs, several at once."""
    room = asyncio.Semaphore(AT_ONCE)

    async def run_one(program: EscapeProgram) -> ProgramOutcome:
        async with room:
            return await run_program(program, host)

    return await asyncio.gather(*map(run_one, programs))


async def run_program(program: EscapeProgram, host: AttackedHost) -> ProgramOutcome:
    """Run one program, again with more time if it was stopped before it had begun."""
    for factor in TIME_FACTORS:
        given = replace(program, seconds=program.seconds * factor)
        started = monotonic()
        try:
            async with asyncio.timeout(given.seconds + HANGS):
                outcome, reports = await _run(given, host)
        except (CallFault, TimeoutError) as fault:
            problem = f"no outcome: {fault!r}"
            return ProgramOutcome(program.name, [problem], "nothing", round(monotonic() - started, 2))
        if b"TRIED" in outcome.stdout or outcome.killed_by != "time":
            break
    problems = _problems(given, outcome, reports)
    return ProgramOutcome(program.name, problems, outcome.killed_by or "exit", round(outcome.seconds, 2))


async def _run(program: EscapeProgram, host: AttackedHost) -> tuple[SandboxOutcome, ReportListener | None]:
    env = {**program.env, "ESCAPE_PROGRAM": program.name}
    async with AsyncExitStack() as stack:
        reports = await stack.enter_async_context(listening()) if program.reports else None
        job = program.job(host.facts, reports=reports.directory if reports else None)
        outcome = await Sandbox(cgroup=host.cgroup).run(replace(job, env=env))
        if reports:
            await reports.settle()
    return outcome, reports


def _problems(program: EscapeProgram, outcome: SandboxOutcome, reports: ReportListener | None) -> list[str]:
    """List what is wrong with an outcome; nothing, if the program was contained."""
    output = outcome.stdout + outcome.stderr
    checks = {
        "the program did not make its attempt": b"TRIED" not in outcome.stdout,
        "escaped": b"ESCAPED" in output,
        f"ended by {outcome.killed_by}": outcome.killed_by not in program.ends,
        f"exit code {outcome.exit_code}": outcome.killed_by is None
        and outcome.exit_code not in program.exit_codes,
        f"took {outcome.seconds:.1f} s": outcome.seconds > program.seconds + GRACE,
        "more output than allowed": len(output) > program.limits.output_bytes,
        "control characters on the screen": "\x1b" in printable(output.decode(errors="replace")),
        "another result": program.result is not None
        and (reports is None or reports.result is None or reports.result.output != program.result),
    }
    found = [problem for problem, is_true in checks.items() if is_true]
    return [*found, output[-600:].decode(errors="replace")] if found else []


async def run_mode(
    programs: list[EscapeProgram], place: Path, temporary: Path, cgroup: str
) -> dict[str, object]:
    """Run programs against a host, then look for what they left."""
    with attacked_host(place, terminal=controlling_terminal(), cgroup=cgroup) as host:
        os.environ["ESCAPE_SECRET"] = host.facts["canary"]
        known = {host.victim.pid}
        await _next_run(host)
        before = take_inventory(temporary)
        started = monotonic()
        outcomes = await run_corpus(programs, host)
        hung = await _cancel_all(programs, host)
        took = monotonic() - started
        await _wait_for_the_dead(known)
        problems = before.residue(temporary, host.facts["token"], known)
        return {
            "outcomes": [asdict(each) for each in outcomes],
            "problems": [*hung, *problems, *host.damage(), *await _next_run(host)],
            "seconds": round(took, 1),
            "peak_mb": peak_memory() // MEGABYTE,
        }


async def _cancel_all(programs: list[EscapeProgram], host: AttackedHost) -> list[str]:
    """Start the programs that only the time limit ends, and cancel them, as an executor that stops does."""
    endless = [program for program in programs if program.ends == TIME]
    runs = {asyncio.create_task(_run(each, host), name=each.name) for each in endless}
    if not runs:
        return []
    await asyncio.wait(runs, timeout=UNTIL_CANCELLED)
    for run in runs:
        run.cancel()
    _, hung = await asyncio.wait(runs, timeout=HANGS)
    return [f"cancelled, and hung: {run.get_name()}" for run in hung]


async def _next_run(host: AttackedHost) -> list[str]:
    """Run a harmless program; it must find nothing of those before it."""
    outcome, _ = await _run(replace(CORPUS[0], source=NEXT_RUN, reports=True), host)
    output = outcome.stdout.decode()
    return [] if output == "['program.py', 'shown'] [] 2\n" else [f"the next run found {output} {outcome}"]


async def _wait_for_the_dead(known: set[int]) -> None:
    """Give killed processes a moment to disappear."""
    deadline = monotonic() + 2
    while living_descendants(known) and monotonic() < deadline:  # noqa: ASYNC110 - the kernel has no event
        await asyncio.sleep(0.01)


def give_up_root(places: list[Path]) -> None:
    """Become an unprivileged user for good, who owns these folders; needs no root where there is none."""
    printable("\x1b")  # codecs are imported when first used, and this user may not be able to read them
    sys.base_prefix = "/usr"  # the interpreter of the sandbox: one that this user can read
    if os.geteuid() == 0:
        for place in places:
            os.chown(place, UNPRIVILEGED, UNPRIVILEGED)
        os.setgroups([])
        os.setresgid(UNPRIVILEGED, UNPRIVILEGED, UNPRIVILEGED)
        os.setresuid(UNPRIVILEGED, UNPRIVILEGED, UNPRIVILEGED)


def main(rights: ExecutorRights, folder: Path, word: str, cgroup: str) -> None:
    """Run the corpus in a folder that holds one for the host and one for temporary files; print JSON."""
    if os.getsid(0) != os.getpid():
        os.setsid()
    become_subreaper()
    os.umask(0o022)
    place, temporary = folder / "host", folder / "temporary"
    if rights is ExecutorRights.UNPRIVILEGED:
        give_up_root([place, temporary])
    found = probe()
    if found.privilege_mode is not rights.privilege_mode:
        raise SystemExit(f"{UNAVAILABLE}: {found.failure or found.privilege_mode}")
    programs = [each for each in CORPUS if word in each.name or word in each.family]
    covered = [each for each in programs if rights.covers(each.family)]
    print(json.dumps(asyncio.run(run_mode(covered, place, temporary, cgroup))))


if __name__ == "__main__":
    main(ExecutorRights[sys.argv[1]], Path(sys.argv[2]), *sys.argv[3:])
