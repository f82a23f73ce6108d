"""`scoreline coordinator`: the service that publishes, supervises and completes batches."""

import socket
from typing import Annotated

import typer

app = typer.Typer(
    help="Run the coordinator: it publishes, supervises and completes batches.", no_args_is_help=True
)


@app.callback()
def group() -> None:
    """Run the coordinator."""


@app.command(
    epilog="Examples: scoreline coordinator start   ·   scoreline coordinator start --name coordinator-b"
)
def start(
    *,
    name: Annotated[str | None, typer.Option(help="Name of this coordinator.")] = None,
    window: Annotated[
        int,
        typer.Option(min=1, max=1_000_000, help="Maximum number of published evaluations of a batch."),
    ] = 20_000,
    run_id: Annotated[str, typer.Option("--run", hidden=True)] = "",
    follow_stdin: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Start a coordinator; one of several is elected leader, the others stand by."""
    import uvloop

    from coordinator.app import CoordinatorConfig, run
    from coordinator.settings import CoordinatorSettings
    from scoreline.local.processes import end_with_parent
    from scoreline.local.readiness import ready_report
    from scoreline.local.redis_scripts import executor_scripts
    from scoreline.local.servers import ready_servers
    from scoreline.observability.logs import configure
    from scoreline.observability.wiring import Service, telemetry_for
    from scoreline.settings import load_settings

    if follow_stdin:
        end_with_parent()
    report_ready = ready_report()
    settings = load_settings()
    configure(settings.log_level)
    wanted = CoordinatorSettings(
        name=name or f"coordinator@{socket.gethostname()}", run_id=run_id, window=window
    )
    with (
        ready_servers(settings, service="coordinator") as servers,
        telemetry_for(Service.COORDINATOR, settings, name=wanted.name),
    ):
        scripts = executor_scripts()
        site = CoordinatorConfig(
            servers.redis_url, servers.postgres_url, settings.shards, settings.queue_backend, scripts
        )
        report_ready()
        uvloop.run(run(site, wanted))


@app.command(epilog="Example: scoreline coordinator check")
def check() -> None:
    """Check that a coordinator is the leader and makes progress; exit code 1 if not."""
    import asyncio

    from projections.leader_election.advisory_lock import COORDINATOR
    from scoreline.local.servers import ready_servers
    from scoreline.reports.checks import check_leader
    from scoreline.settings import load_settings

    with ready_servers(load_settings()) as servers:
        typer.echo(asyncio.run(check_leader(servers.postgres_url, COORDINATOR)))
