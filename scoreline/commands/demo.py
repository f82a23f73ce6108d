"""`scoreline demo`: see it work, on this machine, in a minute."""

from typing import Annotated

import typer


def run(
    *,
    evaluations: Annotated[int, typer.Option(min=1, max=1_000_000, help="How many to run.")] = 1_000,
    workers: Annotated[int, typer.Option(min=1, max=16, help="Storage workers.")] = 1,
    seed: Annotated[int | None, typer.Option(help="Repeat a run's disorder.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print only one JSON object on stdout.")] = False,
) -> None:
    """Run a thousand fast evaluations whose events arrive late, doubled, out of order, or not at all."""
    from scoreline.demo.run import run_demo

    raise typer.Exit(run_demo(evaluations=evaluations, workers=workers, seed=seed, as_json=as_json))
