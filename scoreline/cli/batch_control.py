"""`scoreline batch pause` and `cancel`."""

from typing import Annotated

import typer

from scoreline.cli.batch_options import Batch

PAUSE_EPILOG = "To continue: scoreline batch resume BATCH"
CANCEL_EPILOG = "Example: scoreline batch cancel gsm8k-4fk2zq --reason 'wrong prompt'"
Reason = Annotated[str, typer.Option(help="Reason, stored with the batch.")]


def pause(batch: Batch, *, reason: Reason = "") -> None:
    """Pause a batch: running evaluations finish, no other is started."""
    from scoreline.local.servers import ready_servers
    from scoreline.settings import load_settings
    from scoreline.submit.batch_control import run_pause

    settings = load_settings()
    with ready_servers(settings, service="coordinator") as servers:
        run_pause(servers, settings, batch, reason=reason)


def cancel(batch: Batch, *, reason: Reason = "") -> None:
    """Cancel a batch for good: running evaluations are aborted, no other is started."""
    from scoreline.local.servers import ready_servers
    from scoreline.settings import load_settings
    from scoreline.submit.batch_control import run_cancel

    settings = load_settings()
    with ready_servers(settings, service="coordinator") as servers:
        run_cancel(servers, settings, batch, reason=reason)
