"""`scoreline batch run`: what is submitted, where it runs, and what supervises it."""

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any

from rich.console import Console

from domain.ids import FLEET
from scoreline.command_error import CommandError
from scoreline.formatting import counted
from scoreline.invocation import batch_command
from scoreline.local.fleet import Fleet
from scoreline.local.fork_server_launch import LaunchedServer
from scoreline.local.interruption import InterruptedRun, Interruption
from scoreline.local.process_log import log_of
from scoreline.local.processes import service_argv
from scoreline.local.servers import ready_servers
from scoreline.local.supervisor import RunRequest, supervise
from scoreline.observability.wiring import Service, telemetry_for
from scoreline.private_files import default_root, open_private
from scoreline.reports.export import read_outputs
from scoreline.servers.addresses import Servers
from scoreline.settings import Settings, load_settings
from scoreline.startup_interrupt import INTERRUPTED, NOTHING_ACCEPTED, STARTUP_INTERRUPT
from scoreline.submit.preflight import Preflight, preflight
from scoreline.submit.spec.builder import make_plan
from scoreline.submit.submission import submit
from taskqueue.backends import BadBackend, choose

LOCAL_EXECUTORS = 4
"""Executors of a local run at most: as many as its evaluations can fill."""
NO_SPEC = (
    "There is no scoreline.yaml in {folder}. Name a spec: scoreline batch run -c FILE. Or use flags: "
    "scoreline batch run --dataset FILE --target TARGET --evaluator EVALUATOR. "
    "To try it without either: scoreline batch run --mode simulated"
)
NOT_JUDGED = "Not scored: there is no evaluator, answers are recorded only. To score: --evaluator exact"


@dataclass(frozen=True, slots=True)
class Placement:
    """Placement a batch runs."""

    distributed: bool = False
    workers: int | None = None
    concurrency: int | None = None
    queue: str | None = None
    detach: bool = False
    verbose: bool = False
    checks: bool = True
    """Whether a batch is checked before anything starts."""
    outputs: tuple[Path, ...] = ()
    """Exports to write at the end."""
    launched: LaunchedServer | None = field(default=None, compare=False)
    """The fork server of the processes that are started here, if it was launched before."""

    def settings(self) -> Settings:
        """Read the settings, and check that they fit."""
        settings = load_settings(
            redis_url=self.queue,
            worker_concurrency=self.concurrency,
            log_level="DEBUG" if self.verbose else None,
        )
        if self.distributed and not (settings.redis_url and settings.postgres_url):
            raise CommandError("--distributed needs EVAL_REDIS_URL (or --queue) and EVAL_POSTGRES_URL.")
        try:
            choose(settings.queue_backend, fleet=True)
        except BadBackend as error:
            raise CommandError(str(error)) from error
        return settings

    def preflight(self, settings: Settings) -> Preflight:
        """Return which checks run before anything starts."""
        allowed = settings.worker_allow_unsandboxed
        return Preflight(self.distributed, is_wanted=self.checks, allow_unsandboxed=allowed)

    def new_run(self) -> str:
        """Make the id of a local run, whose processes serve only its batch, or name the fleet."""
        return FLEET if self.distributed else token_hex(8)

    def fleet(
        self, batch_id: str, settings: Settings, run_id: str, requires: Sequence[str], *, pending: int
    ) -> Fleet | None:
        """Return what to start here for so many evaluations; None where others do the work."""
        executors = self.workers
        if executors is None:
            executors = 0 if self.distributed else local_executors(pending, settings.worker_concurrency)
        if self.distributed and not executors:
            return None
        labels = tuple(requires) if run_id else ()  # what is run here may run here
        return Fleet(batch_id, executors, settings.worker_concurrency, run_id=run_id, labels=labels)


def _reject_replaced_inputs(outputs: Sequence[Path], inputs: Sequence[Path]) -> None:
    """An export replaces its file: it must not be one that the batch reads."""
    read = {path.resolve() for path in inputs}
    for path in outputs:
        if path.resolve() in read:
            raise CommandError(f"-o {path} would replace a file that this batch reads; choose another.")


def local_executors(pending: int, concurrency: int) -> int:
    """Return how many executors so many evaluations can fill, up to the most that a local run starts."""
    return max(1, min(LOCAL_EXECUTORS, -(-pending // concurrency)))


def run_batch(
    spec_file: Path | None, flags: Mapping[str, Any], placement: Placement, *, as_json: bool
) -> int:
    """Submit a batch and drive it to its end; returns the exit code."""
    settings = placement.settings()
    outputs = read_outputs(placement.outputs)
    spec_file = spec_file or _spec_here(flags)
    flags = _with_settings(flags, settings)
    plan = make_plan(spec_file, flags, folder=Path.cwd(), limits=settings.limits)
    _reject_replaced_inputs(placement.outputs, [*plan.files, *([spec_file] if spec_file else [])])
    console = Console(stderr=True, highlight=False)
    plan = preflight(plan, console, placement.preflight(settings))
    with ready(settings) as (servers, interruption):
        run_id = placement.new_run()
        try:
            batch_id, total = asyncio.run(
                submit(plan, servers, settings, console, run_id=run_id, check=interruption.check)
            )
        except InterruptedRun:
            console.print(NOTHING_ACCEPTED)
            return INTERRUPTED
        STARTUP_INTERRUPT.accepted()
        console.print(f"{batch_id}: {counted(total, 'evaluation')} accepted", markup=False)
        if not plan.spec.evaluators:
            console.print(NOT_JUDGED, markup=False, soft_wrap=True)
        fleet = placement.fleet(batch_id, settings, run_id, plan.spec.requires, pending=total)
        wanted = RunRequest(
            batch_id, fleet, as_json, plan.min_pass_rate, outputs, launched=placement.launched
        )
        return go_on(wanted, placement, servers, settings, console, interruption)


@contextmanager
def ready(settings: Settings) -> Iterator[tuple[Servers, Interruption]]:
    """Lend servers, and receive signals from here on: what is accepted is paused if one comes."""
    with (
        ExitStack() as last,
        ready_servers(settings, service="coordinator") as servers,
        telemetry_for(Service.SUBMITTER, settings),
    ):
        # Until the end: a signal that comes while servers are released changes no exit code.
        interruption = last.enter_context(Interruption())
        if STARTUP_INTERRUPT.received:  # a library has caught what the handler raised
            raise KeyboardInterrupt
        yield servers, interruption


def go_on(  # noqa: PLR0913, PLR0917 - all that a drive needs
    wanted: RunRequest,
    placement: Placement,
    servers: Servers,
    settings: Settings,
    console: Console,
    interruption: Interruption,
) -> int:
    """Supervise a batch to its end, or leave that to a process in the background."""
    if not placement.detach or interruption.received:
        return supervise(wanted, servers, settings, console, interruption)
    if wanted.fleet:
        _supervise_in_background(wanted, placement, settings)
    if wanted.as_json:
        print(json.dumps({"batch_id": wanted.batch_id, "status": "running"}), flush=True)  # noqa: T201 - for machines
    console.print(f"To watch it: {batch_command('status', wanted.batch_id, '--watch')}", highlight=False)
    return 0


def _supervise_in_background(wanted: RunRequest, placement: Placement, settings: Settings) -> None:
    """Leave a process behind that drives the batch, and ends with it."""
    argv = service_argv("batch", "resume", wanted.batch_id)
    argv += ["--distributed"] if placement.distributed else []
    argv += ["--workers", str(wanted.fleet.executors if wanted.fleet else 0)]
    argv += ["--concurrency", str(settings.worker_concurrency)]
    argv += ["--verbose"] if placement.verbose else []
    argv += ["--min-pass-rate", str(wanted.min_pass_rate)] if wanted.min_pass_rate is not None else []
    argv += [word for path in placement.outputs for word in ("--output", str(path.absolute()))]
    # Not as an argument: a URL may hold a password, and a process list shows those.
    environ = {**os.environ, **({"EVAL_REDIS_URL": placement.queue} if placement.queue else {})}
    log_path = log_of(settings.data_dir or default_root(), wanted.batch_id)
    with open_private(log_path) as log:
        subprocess.Popen(  # noqa: S603 - this very program
            argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ, start_new_session=True
        )


def _with_settings(flags: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """Use a setting of the environment where no flag was given."""
    made = settings.model_fields_set
    given = {
        "retries": settings.worker_max_retries if "worker_max_retries" in made else None,
        "timeout": settings.worker_task_timeout if "worker_task_timeout" in made else None,
    }
    return {**flags, **{key: value for key, value in given.items() if flags.get(key) is None}}


def _spec_here(flags: Mapping[str, Any]) -> Path | None:
    """Use the spec of this folder unless flags describe the batch."""
    here = Path("scoreline.yaml")
    is_described = any(flags.get(key) for key in ("dataset", "targets", "mode"))
    if not is_described and not here.exists():
        raise CommandError(NO_SPEC.format(folder=Path.cwd()))
    return None if is_described else here
