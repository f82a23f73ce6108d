"""`scoreline worker`: executors, which claim tasks and execute evaluations."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from scoreline.settings import Settings

app = typer.Typer(help="Run executors: they claim tasks and execute evaluations.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Run executors: they claim tasks and execute evaluations."""


@app.command(
    epilog="Examples: scoreline worker start   ·   scoreline worker start --concurrency 50 --project search"
    "   ·   scoreline worker start --id worker-0 --queue redis://localhost:6379"
    "   ·   scoreline worker start --label gpu --label region=eu"
    "   ·   scoreline worker start --once --verbose",
)
def start(  # noqa: PLR0913 - a command has its flags
    *,
    name: Annotated[
        str | None,
        typer.Option("--id", help="Executor name; default: the host's name [EVAL_WORKER_ID]."),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(min=1, max=10_000, help="Concurrent evaluations (slots) [EVAL_WORKER_CONCURRENCY]."),
    ] = None,
    project: Annotated[str | None, typer.Option(help="Execute only batches of this project.")] = None,
    queue: Annotated[str | None, typer.Option(metavar="URL", help="Redis URL [EVAL_REDIS_URL].")] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Debug log, with each attempt [EVAL_LOG_LEVEL=DEBUG].")
    ] = False,
    label: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=VALUE]",
            help="Label to declare (repeatable): batches that require it run here [EVAL_WORKER_LABELS].",
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Exit when no task is left.")] = False,
    run_id: Annotated[str, typer.Option("--run", hidden=True)] = "",
    follow_stdin: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Start an executor: it claims tasks until it is stopped, then finishes those it has claimed."""
    import os
    from datetime import timedelta

    import uvloop

    from domain.eligibility import Eligibility
    from executor.app import collect_garbage_rarely, run_executor
    from executor.contract import ExecutionEnvironment
    from executor.settings import ExecutorSettings, RedisSettings, Timings
    from scoreline.local.processes import end_with_parent
    from scoreline.local.readiness import ready_report
    from scoreline.observability.logs import configure, warn_of_short_secrets
    from scoreline.observability.wiring import Service, telemetry_for
    from scoreline.private_files import default_root
    from scoreline.settings import RateLimitMode, load_settings

    if follow_stdin:
        end_with_parent()
    report_ready = ready_report()
    settings = load_settings(
        worker_id=name,
        worker_concurrency=concurrency,
        redis_url=queue,
        log_level="DEBUG" if verbose else None,
    )
    configure(settings.log_level)
    warn_of_short_secrets(os.environ)
    slots = settings.worker_concurrency
    plan = ExecutorSettings(
        _checked(settings.worker_id),
        slots=slots,
        eligibility=Eligibility(run_id, project, _labels(settings, label)),
        once=once,
        drain=timedelta(seconds=settings.worker_drain),
        timings=Timings(heartbeat=timedelta(seconds=settings.worker_heartbeat_interval)),
        keeps_lanes_alone=settings.rate_limit_mode is RateLimitMode.PER_WORKER,
    )
    environment = ExecutionEnvironment(
        slots=slots,
        allow_unsandboxed=settings.worker_allow_unsandboxed,
        breaker_failures=settings.rate_limit_breaker_failures,
        breaker_seconds=settings.rate_limit_breaker_seconds,
        environ=dict(os.environ),
        data_dir=str(settings.data_dir or default_root()),
        cgroup=str(settings.worker_cgroup or ""),
    )
    with _redis(settings) as redis_url, telemetry_for(Service.EXECUTOR, settings, name=plan.name):
        collect_garbage_rarely()
        report_ready()
        uvloop.run(
            run_executor(RedisSettings(redis_url, shards=settings.shards), plan, environment=environment)
        )


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
    from scoreline.servers.availability import check_redis

    if settings.redis_url:
        asyncio.run(check_redis(settings.redis_url))
        yield settings.redis_url
        return
    with named_servers(settings) as servers:
        asyncio.run(check_redis(servers.redis_url))
        yield servers.redis_url
