"""`scoreline batch pause|retry|cancel`: what people ask of a batch."""

from typing import Annotated

import typer

from scoreline.cli.batch_run import (
    AsJson,
    Batch,
    Concurrency,
    Detach,
    Distributed,
    MinPassRate,
    Outputs,
    Queue,
    Workers,
)

PAUSE_EPILOG = "To go on: scoreline batch resume BATCH"
RETRY_EPILOG = (
    "Examples: scoreline batch retry gsm8k-4fk2zq   ·   "
    "scoreline batch retry gsm8k-4fk2zq --only gsm8k-4fk2zq.00000017"
)
CANCEL_EPILOG = "Example: scoreline batch cancel gsm8k-4fk2zq --reason 'wrong prompt'"
Reason = Annotated[str, typer.Option(help="Reason, stored with the batch.")]


def pause(batch: Batch, *, reason: Reason = "") -> None:
    """Let what is in hand come to its end, and start nothing new."""
    from scoreline.local.servers import ready_servers
    from scoreline.settings import load_settings
    from scoreline.submit.batch_control import run_pause

    settings = load_settings()
    with ready_servers(settings, service="coordinator") as servers:
        run_pause(servers, settings, batch, reason=reason)


def cancel(batch: Batch, *, reason: Reason = "") -> None:
    """Call a batch off for good: what is in hand is aborted, the rest is never started."""
    from scoreline.local.servers import ready_servers
    from scoreline.settings import load_settings
    from scoreline.submit.batch_control import run_cancel

    settings = load_settings()
    with ready_servers(settings, service="coordinator") as servers:
        run_cancel(servers, settings, batch, reason=reason)


def retry(  # noqa: PLR0913 - a command has its flags
    batch: Batch,
    *,
    only: Annotated[
        list[str] | None, typer.Option(help="Evaluation id (repeatable); default: all dead letters.")
    ] = None,
    distributed: Distributed = False,
    workers: Workers = None,
    concurrency: Concurrency = None,
    queue: Queue = None,
    detach: Detach = False,
    output: Outputs = None,
    min_pass_rate: MinPassRate = None,
    as_json: AsJson = False,
) -> None:
    """Try again what failed or timed out, all of it or a selection."""
    from scoreline.local.run import Where, retry_batch

    where = Where(
        distributed=distributed,
        workers=workers,
        concurrency=concurrency,
        queue=queue,
        detach=detach,
        outputs=tuple(output or ()),
    )
    raise typer.Exit(retry_batch(batch, only or (), where, as_json=as_json, min_pass_rate=min_pass_rate))
