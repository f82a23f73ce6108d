"""`scoreline demo`: a batch with recorded answers and a killed executor, in half a minute."""

from typing import Annotated

import typer

HELP = (
    "Score 400 recorded answers to GSM8K questions, and kill an executor meanwhile.\n\n"
    "The authors of the dataset recorded the answers of two models: no model is called, "
    "and the expected result is known, 45 and 65 of 200. One executor is stopped with claimed tasks, then "
    "killed with SIGKILL; others retry its tasks. At the end every table is verified against the log."
)
EPILOG = (
    "Exit codes: 0 if the result is as expected and the tables equal the log, else 1.\n\n"
    "Examples: scoreline demo   ·   scoreline demo --executors 2   ·   scoreline demo --json"
)
app = typer.Typer()


@app.command(help=HELP, epilog=EPILOG)
def run(
    *,
    executors: Annotated[int, typer.Option(min=1, max=16, help="Executors, one process each.")] = 4,
    as_json: Annotated[
        bool, typer.Option("--json", help="Standard output carries one JSON object, and nothing else.")
    ] = False,
) -> None:
    """Score 400 recorded answers to GSM8K questions, and kill an executor meanwhile."""
    from scoreline.local.demo.run import run_demo

    raise typer.Exit(run_demo(executors=executors, as_json=as_json))
