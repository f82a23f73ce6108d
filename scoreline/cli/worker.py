"""`scoreline worker`: executors, which claim tasks and execute evaluations."""

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from scoreline.cli.option_models import filled

if TYPE_CHECKING:
    from executor.contract import ExecutionEnvironment
    from executor.settings import ExecutorSettings
    from scoreline.settings import Settings

app = typer.Typer(help="Run executors: they claim tasks and execute evaluations.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Run executors: they claim tasks and execute evaluations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """Flags of `worker start`."""

    name: Annotated[
        str | None,
        typer.Option("--id", help="Executor name; default: the host's name [EVAL_WORKER_ID]."),
    ] = None
    concurrency: Annotated[
        int | None,
        typer.Option(min=1, max=10_000, help="Concurrent evaluations (slots) [EVAL_WORKER_CONCURRENCY]."),
    ] = None
    project: Annotated[str | None, typer.Option(help="Execute only batches of this project.")] = None
    queue: Annotated[str | None, typer.Option(metavar="URL", help="Redis URL [EVAL_REDIS_URL].")] = None
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Debug log, with each attempt [EVAL_LOG_LEVEL=DEBUG].")
    ] = False
    label: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=VALUE]",
            help="Label to declare (repeatable): batches that require it run here [EVAL_WORKER_LABELS].",
        ),
    ] = None
    once: Annotated[bool, typer.Option("--once", help="Exit when no task is left.")] = False
    run_id: Annotated[str, typer.Option("--run", hidden=True)] = ""
    follow_stdin: Annotated[bool, typer.Option(hidden=True)] = False

    def settings(self) -> "Settings":
        """Return the settings, overridden by the flags."""
        from scoreline.settings import load_settings

        return load_settings(
            worker_id=self.name,
            worker_concurrency=self.concurrency,
            redis_url=self.queue,
            log_level="DEBUG" if self.verbose else None,
        )

    def executor_settings(self, settings: "Settings") -> "ExecutorSettings":
        """Return the settings of the executor; raises `BadParameter` for a bad name or label."""
        from datetime import timedelta

        from domain.eligibility import Eligibility
        from executor.settings import ExecutorSettings, Timings
        from scoreline.settings import RateLimitMode

        return ExecutorSettings(
            _checked(settings.worker_id),
            slots=settings.worker_concurrency,
            eligibility=Eligibility(self.run_id, self.project, _labels(settings, self.label)),
            once=self.once,
            drain=timedelta(seconds=settings.worker_drain),
            timings=Timings(heartbeat=timedelta(seconds=settings.worker_heartbeat_interval)),
            keeps_lanes_alone=settings.rate_limit_mode is RateLimitMode.PER_WORKER,
        )


@app.command(
    epilog="Examples: scoreline worker start   ·   scoreline worker start --concurrency 50 --project search"
    "   ·   scoreline worker start --id worker-0 --queue redis://localhost:6379"
    "   ·   scoreline worker start --label gpu --label region=eu"
    "   ·   scoreline worker start --once --verbose",
)
@filled
def start(*, options: WorkerOptions) -> None:
    """Start an executor: it claims tasks until it is stopped, then finishes those it has claimed."""
    import os

    import uvloop

    from executor.app import collect_garbage_rarely, run_executor
    from executor.settings import RedisSettings
    from scoreline.local.processes import end_with_parent
    from scoreline.local.readiness import ready_report
    from scoreline.observability.logs import configure, warn_of_short_secrets
    from scoreline.observability.wiring import Service, telemetry_for

    if options.follow_stdin:
        end_with_parent()
    report_ready = ready_report()
    settings = options.settings()
    configure(settings.log_level)
    warn_of_short_secrets(os.environ)
    executor, environment = options.executor_settings(settings), _environment(settings, os.environ)
    with _redis(settings) as redis_url, telemetry_for(Service.EXECUTOR, settings, name=executor.name):
        collect_garbage_rarely()
        report_ready()
        redis = RedisSettings(redis_url, shards=settings.shards)
        uvloop.run(run_executor(redis, executor, environment=environment))


@app.command(
    epilog="Examples: scoreline worker check   ·   scoreline worker check --alive --id worker-b"
    "   ·   scoreline worker check --no-sandbox",
)
def check(
    *,
    name: Annotated[
        str | None,
        typer.Option("--id", help="Executor name; default: the host's name [EVAL_WORKER_ID]."),
    ] = None,
    alive: Annotated[
        bool, typer.Option("--alive", help="Also check that the executor of this name is alive.")
    ] = False,
    sandbox: Annotated[bool, typer.Option(help="Check that the sandbox works.")] = True,
) -> None:
    """Check that an executor can run here; prints what is missing."""
    import asyncio

    from scoreline.reports.checks import check_sandbox, check_worker
    from scoreline.settings import load_settings

    settings = load_settings(worker_id=name)
    if sandbox:
        typer.echo(check_sandbox())
    with _redis(settings) as redis_url:
        typer.echo("Redis answers")
        if alive:
            typer.echo(asyncio.run(check_worker(redis_url, _checked(settings.worker_id))))


def _environment(settings: "Settings", environ: Mapping[str, str]) -> "ExecutionEnvironment":
    from executor.contract import ExecutionEnvironment
    from scoreline.private_files import default_root

    return ExecutionEnvironment(
        slots=settings.worker_concurrency,
        allow_unsandboxed=settings.worker_allow_unsandboxed,
        breaker_failures=settings.rate_limit_breaker_failures,
        breaker_seconds=settings.rate_limit_breaker_seconds,
        environ=dict(environ),
        data_dir=str(settings.data_dir or default_root()),
        cgroup=str(settings.worker_cgroup or ""),
    )


def _labels(settings: "Settings", given: list[str] | None) -> frozenset[str]:
    from domain.eligibility import is_label

    for label in given or ():
        if not is_label(label):
            raise typer.BadParameter(
                f"{label!r} is not a label: letters, digits and . _ / -, perhaps with =VALUE",
                param_hint="--label",
            )
    return settings.labels.union(given or ())


def _checked(name: str | None) -> str:
    from executor.settings import MAX_NAME, is_name

    name = socket.gethostname() if name is None else name
    if not is_name(name):
        raise typer.BadParameter(f"1 to {MAX_NAME} printable characters", param_hint="--id")
    return name


@contextmanager
def _redis(settings: "Settings") -> Iterator[str]:
    """Yield the URL of a reachable Redis, given or embedded; an executor needs no database."""
    import asyncio

    from scoreline.local.servers import named_servers
    from scoreline.servers.redis_check import check_redis

    if settings.redis_url:
        asyncio.run(check_redis(settings.redis_url))
        yield settings.redis_url
        return
    with named_servers(settings) as servers:
        asyncio.run(check_redis(servers.redis_url))
        yield servers.redis_url
