"""`scoreline observe`: the values of every dashboard panel, without Grafana."""

from typing import Annotated

import typer

HELP = (
    "Run a workload under Prometheus, and print every panel of every dashboard.\n\n"
    "A small fleet on this machine scores the demo's batch, calls a simulated provider one by one and in "
    "a provider batch, and stores events that were sent out of order, with metrics on. Then every query of "
    "the dashboards in grafana/ is sent to Prometheus and Postgres, and its values are printed. "
    "Needs `prometheus` on the PATH, and the extras otel and providers."
)
EPILOG = (
    "Exit codes: 0 if every required panel has data, else 1.\n\n"
    "Examples: scoreline observe   ·   scoreline observe --keep   ·   scoreline observe --json"
)
app = typer.Typer()


@app.command(help=HELP, epilog=EPILOG)
def run(
    *,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep Prometheus and the fleet running until Ctrl-C.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Standard output carries one JSON object, and nothing else.")
    ] = False,
) -> None:
    """Run a workload under Prometheus, and print every panel of every dashboard."""
    from scoreline.local.observe.run import run_observe

    raise typer.Exit(run_observe(as_json=as_json, keep=keep))
