"""`scoreline quarantine`: stream entries that are not valid events."""

from typing import Annotated

import typer

app = typer.Typer(help="Inspect entries that are not valid events, and the reasons.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Inspect entries that are not valid events, and the reasons."""


@app.command("list", epilog="Example: scoreline quarantine list --reason conflict --json")
def list_(
    *,
    evaluation: Annotated[str | None, typer.Option(help="Filter by evaluation id.")] = None,
    reason: Annotated[str | None, typer.Option(help="Filter by reason.")] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=100_000, help="Maximum number of entries, newest first.")
    ] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
) -> None:
    """List quarantined entries, newest first."""
    from scoreline.local.servers import ready_servers
    from scoreline.reports.quarantine import show_list
    from scoreline.settings import load_settings

    with ready_servers(load_settings()) as servers:
        show_list(servers, evaluation, reason, limit, as_json=as_json)


@app.command(epilog="Example: scoreline quarantine show 3fa9")
def show(
    identifier: Annotated[str, typer.Argument(help="Entry id, or a prefix of it.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Show one quarantined entry with its bytes."""
    from scoreline.local.servers import ready_servers
    from scoreline.reports.quarantine import show_one
    from scoreline.settings import load_settings

    with ready_servers(load_settings()) as servers:
        show_one(servers, identifier, as_json=as_json)
