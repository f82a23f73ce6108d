"""`scoreline sandbox`: the sandbox of `command` targets and the `code` evaluator on this host."""

from typing import Annotated

import typer

app = typer.Typer(help="Test the sandbox that runs untrusted code on this host.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Test the sandbox that runs untrusted code on this host."""


@app.command(
    epilog="Examples: scoreline sandbox check   ·   scoreline sandbox check --quick"
    "   ·   scoreline sandbox check --json",
)
def check(
    *,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Only the isolation checks that each executor runs at its start."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Test isolation and limits of the sandbox; exit code 1 if a check fails or there is no sandbox."""
    from scoreline.reports.sandbox_report import report_sandbox
    from scoreline.settings import load_settings

    report_sandbox(str(load_settings().worker_cgroup or ""), as_json=as_json, quick=quick)
