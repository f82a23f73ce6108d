"""`scoreline trace`: the trace of one evaluation, across all processes."""

from pathlib import Path
from typing import Annotated

import typer

EPILOG = (
    "Examples: scoreline trace gsm8k-4fk2zq.00000017   ·   "
    "scoreline trace gsm8k-4fk2zq.00000017 --dir /var/lib/scoreline/traces --json"
)
app = typer.Typer()


@app.command(epilog=EPILOG)
def run(
    evaluation: Annotated[str, typer.Argument(help="Evaluation id.", show_default=False)],
    *,
    folder: Annotated[
        Path | None,
        typer.Option("--dir", metavar="D", help="Directory of the span files [EVAL_TRACE_DIR]."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Show the spans of one evaluation as a tree, across all processes."""
    import json

    from scoreline.command_error import CommandError
    from scoreline.observability.span_reader import spans_of
    from scoreline.observability.tree import document, draw
    from scoreline.reports.screen import screen
    from scoreline.settings import load_settings

    settings = load_settings(trace_dir=folder)
    if settings.trace_dir is None:
        raise CommandError("where are the traces? Set EVAL_TRACE_DIR before a batch is run, or give --dir.")
    if not settings.trace_dir.is_dir():
        raise CommandError(f"{settings.trace_dir} is no folder: no process has written its spans there.")
    spans = spans_of(settings.trace_dir, evaluation)
    if not spans:
        raise CommandError(
            f"{settings.trace_dir} has no trace of {evaluation}. EVAL_TRACE_RATIO sets the share "
            f"of evaluations that is traced, {settings.trace_ratio:g} here; "
            "1 traces all that are submitted then."
        )
    if as_json:
        typer.echo(json.dumps(document(evaluation, spans)))
    else:
        draw(screen(), evaluation, spans)
