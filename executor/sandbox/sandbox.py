"""Runs jobs in a sandbox, and explains why that is not possible.

Sandbox.check()   why untrusted code is rejected here, or nothing
Sandbox.run(job)  one process tree, one outcome
"""

import asyncio
import shutil
from contextlib import ExitStack, closing
from pathlib import Path
from time import monotonic

from eventlog.redaction import redact_tail
from eventlog.tasks import end
from executor.contract import Permanent, Transient
from executor.sandbox.assembly import SandboxCommand, assembled
from executor.sandbox.bubblewrap_options import PrivilegeMode, environment, limited, with_variables
from executor.sandbox.bubblewrap_status import BubblewrapStatus
from executor.sandbox.job import KilledBy, SandboxJob, SandboxOutcome
from executor.sandbox.memory_cgroup import MemoryCgroup, delegated_cgroup
from executor.sandbox.pid_namespace import PidNamespace
from executor.sandbox.probe import BUBBLEWRAP, TOOL_ENVIRON, probe
from executor.sandbox.process import ProcessSpec, SandboxProcess, start
from executor.sandbox.resource_monitor import watch
from executor.sandbox.run_directories import run_directory
from executor.sandbox.telemetry import counted

_SIGNALS, _OUT_OF_CPU, _KILLED = range(129, 193), 128 + 24, 128 + 9
_SECONDS_TO_DIE = 10.0
_REFUSED = (
    "untrusted code is not run here, for there is no sandbox: {failure}. "
    "Once that is changed, test it with: scoreline sandbox check. To run untrusted code all the same, with "
    "every right of this process, set EVAL_WORKER_ALLOW_UNSANDBOXED=true"
)


class Sandbox:
    """Runs untrusted code; one instance runs any number of jobs concurrently."""

    def __init__(
        self, *, allow_unsandboxed: bool = False, bubblewrap: str = BUBBLEWRAP, cgroup: str = ""
    ) -> None:
        self._allow_unsandboxed = allow_unsandboxed
        self._bubblewrap = bubblewrap
        self._cgroup = delegated_cgroup(cgroup)

    def check(self) -> str:
        """Return why untrusted code is rejected here, and what to do; empty if it may run."""
        if self._cgroup and self._cgroup.failure:
            return f"untrusted code is not run here: {self._cgroup.failure}"
        failure = probe(self._bubblewrap).failure
        return _REFUSED.format(failure=failure) if failure and not self._allow_unsandboxed else ""

    async def run(self, job: SandboxJob) -> SandboxOutcome:
        """Run a job to its end; raises `Permanent` where it may not run, `Transient` where it did not."""
        if refusal := self.check():
            raise Permanent("no_sandbox", refusal)
        privilege_mode = probe(self._bubblewrap).privilege_mode
        if privilege_mode is None:
            return counted(await _run_plainly(job))
        try:
            return counted(await self._run_confined(job, privilege_mode))
        except OSError as error:
            raise Transient("sandbox", f"no sandbox could be built: {error}") from error

    async def _run_confined(self, job: SandboxJob, privilege_mode: PrivilegeMode) -> SandboxOutcome:
        started = monotonic()
        with ExitStack() as stack:
            cgroup = stack.enter_context(self._cgroup.group(job.limits)) if self._cgroup else None
            counts_shared = cgroup is not None
            assembly = stack.enter_context(
                assembled(job, privilege_mode, self._bubblewrap, shared_memory=counts_shared)
            )
            namespace = stack.enter_context(closing(PidNamespace(assembly.account, cgroup)))
            child = await _finished(job, assembly, namespace, cgroup)
            if cgroup and cgroup.ran_out():
                child.killed_by = child.killed_by or "memory"
            return _outcome(child, _exit_code(child, assembly.account), monotonic() - started)


async def _finished(
    job: SandboxJob, assembly: SandboxCommand, namespace: PidNamespace, cgroup: MemoryCgroup | None
) -> SandboxProcess:
    """Run a program until its namespace is empty; raises `Transient` if it does not become empty."""
    launch = ProcessSpec(
        assembly.argv,
        environ=TOOL_ENVIRON,
        output_bytes=job.limits.output_bytes,
        has_input=True,
        descriptors=assembly.descriptors,
    )
    child = await start(launch, namespace)
    watcher = asyncio.create_task(watch(child, namespace, job.limits, cgroup))
    try:
        await child.finish(job.stdin, job.seconds)
    finally:
        await end([watcher])
        # Cancelled runs, too: the cgroup of processes that still end can't be removed.
        is_empty = await namespace.emptied(_SECONDS_TO_DIE)
    if not is_empty:
        raise Transient("sandbox", f"processes of the program survive SIGKILL: ps {namespace.first}")
    return child


def _exit_code(child: SandboxProcess, account: BubblewrapStatus) -> int:
    code = account.exit_code
    if code is None and child.killed_by is None:
        error = redact_tail(child.stderr.decode(errors="replace").strip(), 500)
        raise Transient("sandbox", f"the program was not started: {error or 'bubblewrap was killed'}")
    return _KILLED if code is None else code


async def _run_plainly(job: SandboxJob) -> SandboxOutcome:
    """Run a job without a sandbox, as the operator allows: with limits, and a directory of its own."""
    started = monotonic()
    with run_directory() as directory:
        workdir = str(directory)
        _furnish(directory, job)
        launch = ProcessSpec(
            [
                *limited(job.limits),
                "--",
                *with_variables(job.argv, environment(job, workdir=workdir, reports=str(job.reports))),
            ],
            environ=TOOL_ENVIRON,
            output_bytes=job.limits.output_bytes,
            has_input=bool(job.stdin),
            workdir=workdir,
            descriptors=job.inherited,
        )
        child = await start(launch)
        await child.finish(job.stdin, job.seconds)
    return _outcome(child, child.exit_code, monotonic() - started)


def _furnish(workdir: Path, job: SandboxJob) -> None:
    """Copy the job's files: without a sandbox a program could write to the originals."""
    for name, source in job.files.items():
        place = workdir / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, place, symlinks=True)
        else:
            shutil.copy(source, place)
    for name, content in job.texts.items():
        (workdir / name).write_bytes(content)


def _outcome(child: SandboxProcess, exit_code: int, seconds: float) -> SandboxOutcome:
    killed_by = child.killed_by or _by_signal(exit_code)
    return SandboxOutcome(exit_code, bytes(child.stdout), bytes(child.stderr), killed_by, seconds)


def _by_signal(exit_code: int) -> KilledBy | None:
    if exit_code == _OUT_OF_CPU:
        return "time"
    return "signal" if exit_code in _SIGNALS else None
