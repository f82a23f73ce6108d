"""`scoreline observe`: see what the dashboards would show, without a Grafana."""

from typing import Annotated

import typer

HELP = (
    "Run real work under a real Prometheus, and show every panel of every dashboard here.\n\n"
    "A small fleet on this machine scores the demo's batch, asks a simulated provider one by one and in "
    "a batch, and puts a foreign writer's events in order, with metrics on. Then every query of the "
    "dashboards in grafana/ is asked of Prometheus and Postgres, and its figures are printed. "
    "Needs `prometheus` on the PATH, and the extras otel and providers."
)
EPILOG = (
    "Ends with 0 if every panel that must show something does, else with 1.\n\n"
    "Examples: scoreline observe   ·   scoreline observe --keep   ·   scoreline observe --json"
)


def run(
    *,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave Prometheus and the fleet up until Ctrl-C.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Standard output carries one JSON object, and nothing else.")
    ] = False,
) -> None:
    """Run real work under a real Prometheus, and show every panel of every dashboard here."""
    from scoreline.local.observe.run import run_observe

    raise typer.Exit(run_observe(as_json=as_json, keep=keep))
