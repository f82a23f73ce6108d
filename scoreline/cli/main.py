"""The command line. A command is imported when it is called, and imports what it needs when it runs."""

import atexit
import errno
import gc
import io
import os
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from scoreline.cli.lazy_commands import lazy_group
from scoreline.cli.secret_files import open_secret_files
from scoreline.cli.switches import show_as_switches
from scoreline.invocation import as_started
from scoreline.local.readiness import READY_FD, UNAVAILABLE
from scoreline.startup_interrupt import STARTUP_INTERRUPT

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)

COMMANDS = {
    "demo": "scoreline.cli.demo",
    "observe": "scoreline.cli.observe",
    "replay": "scoreline.cli.replay",
    "trace": "scoreline.cli.trace",
    "provider-sim": "scoreline.cli.provider_sim",
    "batch": "scoreline.cli.batch",
    "dataset": "scoreline.cli.dataset",
    "worker": "scoreline.cli.worker",
    "coordinator": "scoreline.cli.coordinator",
    "storage-worker": "scoreline.cli.storage_worker",
    "sandbox": "scoreline.cli.sandbox",
    "quarantine": "scoreline.cli.quarantine",
    "db": "scoreline.cli.database",
}
"""The commands in the order of help, and the module of each."""

app = typer.Typer(
    name="scoreline",
    cls=lazy_group(COMMANDS),
    help="Run evaluations of models, agents and code; each is recorded as an ordered log of events.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog="With no EVAL_REDIS_URL and EVAL_POSTGRES_URL, embedded servers start and stop by themselves.",
)


def _version(wanted: bool) -> None:  # noqa: FBT001 - typer's callback
    if wanted:
        from importlib.metadata import version

        typer.echo(version("scoreline"))
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Declare the options of the program itself."""


def main() -> None:
    """Run a command; an error that the user can act on is printed as one line."""
    _collect_garbage_rarely()
    _ready_streams()
    STARTUP_INTERRUPT.imported()
    is_managed = READY_FD in os.environ
    try:
        open_secret_files(os.environ)
        _redact_secrets()
        try:
            _command()()
        finally:
            sys.stdout.flush()  # while an error can still be reported
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        if error.errno not in (*NO_ROOM, errno.EPIPE):
            raise
        _end_unheard(error)
    except Exception as error:
        if STARTUP_INTERRUPT.received:  # a library has made another error of it
            sys.exit(130)
        message = str(error) if isinstance(error, _explained()) else _server_problem(error)
        if message is None:
            raise
        typer.echo(_redacted(as_started(f"error: {message}")), err=True)
        sys.exit(UNAVAILABLE if is_managed and isinstance(error, _server_away()) else 1)


def _collect_garbage_rarely() -> None:
    """Save a short command a quarter of its time: what it imports is no garbage, also not at its end.

    Older generations keep their default thresholds: a command that runs for days stays small.
    """
    gc.set_threshold(50_000, *gc.get_threshold()[1:])
    atexit.register(gc.freeze)


def _redact_secrets() -> None:
    """Register the secrets of the environment for redaction in all output of this process."""
    from eventlog.redaction import KNOWN
    from eventlog.secret_sources import secrets_in
    from scoreline.observability.logs import redact_uncaught

    KNOWN.add(secrets_in(os.environ))
    redact_uncaught()


def _redacted(text: str) -> str:
    from eventlog.redaction import redact

    return redact(text)


def _command() -> Any:  # noqa: ANN401 - a command of typer's own click, which has no public type
    command = typer.main.get_command(app)
    show_as_switches(command)
    return command


def _ready_streams() -> None:
    # A stream that was closed is None to Python, and its number would go to the next file opened.
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115 - open as long as we are
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115 - as above
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(
                errors="replace"
            )  # a terminal without the sign gets another, not a traceback


def _end_unheard(error: OSError) -> NoReturn:
    if error.errno in NO_ROOM:
        where = error.filename or "the output"
        typer.echo(f"error: No space is left for {where}; what was written of it is not whole.", err=True)
    # What is left in the buffer would be tried again, and end in a traceback.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(1)


def _server_away() -> type[Exception]:
    from scoreline.servers.availability import Unavailable

    return Unavailable


def _server_problem(error: Exception) -> str | None:
    """Explain an error of PostgreSQL or Redis in one line; None for any other."""
    from scoreline.servers.errors import explain

    return explain(error)


def _explained() -> tuple[type[Exception], ...]:
    """List the errors whose text is written for the user."""
    from projections.database.migrations import MigrationError
    from projections.database.readiness import DatabaseNotReady
    from scoreline.command_error import CommandError
    from scoreline.local.embedded import EmbeddedServerError
    from scoreline.servers.availability import Unavailable
    from scoreline.settings import SettingsError

    return DatabaseNotReady, MigrationError, EmbeddedServerError, Unavailable, SettingsError, CommandError
