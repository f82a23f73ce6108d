"""`scoreline db`: the tables."""

import typer

app = typer.Typer(help="Manage the database schema.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Manage the database schema."""


@app.command(
    epilog="Example: EVAL_POSTGRES_URL=postgresql://me@db/scoreline scoreline db migrate",
)
def migrate() -> None:
    """Apply pending migrations. Idempotent, and safe to run concurrently."""
    import asyncio

    from psycopg.errors import InsufficientPrivilege

    from projections.database.readiness import prepare
    from scoreline.command_error import CommandError
    from scoreline.local.servers import ready_servers
    from scoreline.servers.postgres_check import check_postgres
    from scoreline.settings import load_settings

    settings = load_settings()

    async def given(url: str) -> None:
        await check_postgres(url)
        try:
            applied = await prepare(url, shards=settings.shards)
        except InsufficientPrivilege as denied:
            reason = (denied.diag.message_primary or "permission denied").rstrip(".")
            raise CommandError(
                f"PostgreSQL denies this role to change the tables ({reason}). Migrate as the owner of the"
                " database, such as the migrator that deploy/postgres/init.sql makes."
            ) from denied
        _report([m.name for m in applied])

    if settings.postgres_url:
        asyncio.run(given(settings.postgres_url))
        return
    with ready_servers(settings):
        _report([])


def _report(applied: list[str]) -> None:
    for name in applied:
        typer.echo(f"applied {name}", err=True)
    typer.echo("The database is up to date.", err=True)
