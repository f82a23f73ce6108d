"""`scoreline storage-worker`: the service that applies events from the log to the tables."""

import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from scoreline.cli.option_models import filled

if TYPE_CHECKING:
    from scoreline.local.storage_workers import WorkerPlan

app = typer.Typer(
    help="Run storage workers: they apply events from the log to the tables.", no_args_is_help=True
)


@app.callback()
def group() -> None:
    """Run storage workers: they apply events from the log to the tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageWorkerOptions:
    """Flags of `storage-worker start`."""

    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes to run.")] = 1
    name: Annotated[str | None, typer.Option(help="Stable consumer name; default: the host's name.")] = None
    ordering: Annotated[
        str | None, typer.Option(help="strict, or degraded: bridge gaps at once [EVAL_ORDERING].")
    ] = None
    gap_timeout: Annotated[
        float | None, typer.Option(help="Seconds to wait for a missing event [EVAL_GAP_TIMEOUT].")
    ] = None
    batch_size: Annotated[
        int, typer.Option(min=1, max=50_000, help="Maximum number of wake-ups per read.")
    ] = 2_000
    health_port: Annotated[
        int | None,
        typer.Option(
            help="Serve /health and /asyncapi.json on loopback; further workers take the next ports."
        ),
    ] = None
    restart: Annotated[
        bool, typer.Option(help="Restart a worker that exits; use --no-restart under another supervisor.")
    ] = True
    follow_stdin: Annotated[bool, typer.Option(hidden=True)] = False

    def plan(self) -> "WorkerPlan":
        """Return the storage workers to run."""
        from scoreline.local.storage_workers import WorkerPlan

        return WorkerPlan(
            self.name or socket.gethostname(), self.workers, self.batch_size, self.health_port
        )


@app.command(
    epilog="Examples: scoreline storage-worker start   ·   "
    "scoreline storage-worker start --workers 2 --health-port 8081",
)
@filled
def start(*, options: StorageWorkerOptions) -> None:
    """Start storage workers and keep them running."""
    from scoreline.local.processes import end_with_parent
    from scoreline.local.readiness import ready_report
    from scoreline.local.servers import ready_servers
    from scoreline.local.storage_workers import run_here, run_managed
    from scoreline.observability.logs import configure
    from scoreline.settings import load_settings

    if options.follow_stdin:
        end_with_parent()
    report_ready = ready_report()
    settings = load_settings(ordering=options.ordering, gap_timeout=options.gap_timeout)
    configure(settings.log_level)
    plan = options.plan()
    with ready_servers(settings, service="storage") as servers:
        if settings.redis_url is None or settings.postgres_url is None:
            _print_addresses(servers.redis_url, servers.postgres_url)
        if options.restart or options.workers > 1:
            run_managed(plan, settings, servers)
        else:
            run_here(plan, settings, servers, report_ready=report_ready)


def _print_addresses(redis_url: str, postgres_url: str) -> None:
    """Print how to connect to the embedded servers from another terminal."""
    from scoreline.servers.availability import redact

    typer.echo(f'REDIS_CLI="redis-cli -s {redis_url.removeprefix("unix://")}"', err=True)
    typer.echo(f'EVAL_POSTGRES_URL="{redact(postgres_url)}"', err=True)


@app.command()
def asyncapi() -> None:
    """Print the AsyncAPI document of the service."""
    from storage_worker.app import build_app
    from storage_worker.settings import StorageSettings

    settings = StorageSettings(
        "redis://localhost:6379", "postgresql://localhost/scoreline", "storage-worker"
    )
    typer.echo(build_app(settings).schema.to_specification().to_json())
