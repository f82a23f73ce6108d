"""`scoreline db`: the tables."""

import typer

app = typer.Typer(help="Look after the database.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Look after the database."""


@app.command(
    epilog="Example: EVAL_POSTGRES_URL=postgresql://me@db/scoreline scoreline db migrate",
)
def migrate() -> None:
    """Bring the database up to date. Safe to repeat, and when two run at once."""
    import asyncio

    from projections.database import prepare
    from scoreline.preflight import check_postgres
    from scoreline.servers import reachable_servers
    from scoreline.settings import load_settings

    settings = load_settings()

    async def given(url: str) -> None:
        await check_postgres(url)
        _report([m.name for m in await prepare(url, shards=settings.shards)])

    if settings.postgres_url:
        asyncio.run(given(settings.postgres_url))
        return
    with reachable_servers(settings):
        _report([])


def _report(applied: list[str]) -> None:
    for name in applied:
        typer.echo(f"applied {name}", err=True)
    typer.echo("The database is up to date.", err=True)
