"""`scoreline demo`: see it work, on this machine, in half a minute."""

from typing import Annotated

import typer

HELP = (
    "Score 400 recorded answers to GSM8K questions, and kill an executor in the middle of it.\n\n"
    "Two models gave the answers, and the authors of the dataset have recorded them: no model is called, "
    "and what must come out is known, 45 and 65 of 200. One executor is frozen with work in hand, then "
    "killed with SIGKILL; others do its work. At the end every table is held against the log."
)
EPILOG = (
    "Ends with 0 if every figure is the known one and the tables equal the log, else with 1.\n\n"
    "Examples: scoreline demo   ·   scoreline demo --executors 2   ·   scoreline demo --json"
)


def run(
    *,
    executors: Annotated[int, typer.Option(min=1, max=16, help="Executors, one process each.")] = 4,
    as_json: Annotated[
        bool, typer.Option("--json", help="Standard output carries one JSON object, and nothing else.")
    ] = False,
) -> None:
    """Score 400 recorded answers to GSM8K questions, and kill an executor in the middle of it."""
    from scoreline.local.demo.run import run_demo

    raise typer.Exit(run_demo(executors=executors, as_json=as_json))
