"""`scoreline batch resume` and `retry`: a batch that is on record already, driven to its end."""

import asyncio
import json
from collections.abc import Sequence

from rich.console import Console

from coordinator.budget import BudgetChange
from coordinator.coordinator import requires_of
from coordinator.operations import MovedCounts
from projections.ledger.batch import Batch
from projections.queries.batches import read_snapshot
from scoreline.command_error import CommandError
from scoreline.formatting import counted
from scoreline.invocation import batch_command
from scoreline.local.run import Placement, go_on, ready
from scoreline.local.supervisor import RunRequest
from scoreline.reports.export import read_outputs
from scoreline.reports.pass_rate import is_scored
from scoreline.servers.addresses import Servers
from scoreline.servers.connection import connected
from scoreline.settings import Settings
from scoreline.submit.operator import operator
from scoreline.submit.spec.values import batch_api as read_batch_api


def resume_batch(  # noqa: PLR0913 - what a resume may change
    batch_id: str,
    placement: Placement,
    *,
    as_json: bool,
    min_pass_rate: float | None = None,
    budget: BudgetChange | None = None,
    batch_api: bool | str | None = None,
) -> int:
    """Go on with a batch, perhaps with a new budget, or with provider batches; returns the exit code."""
    settings = placement.settings()
    console = Console(stderr=True, highlight=False)
    with ready(settings) as (servers, interruption):
        asyncio.run(_check_gate(batch_id, servers, min_pass_rate))
        if batch_api is not None:
            moved = asyncio.run(_ask_in_batches(batch_id, servers, settings, wanted=batch_api))
            if batch_api:
                console.print(_who_asks(moved), markup=False)
        run_id = placement.new_run()
        batch = asyncio.run(_ask_to_resume(batch_id, budget or BudgetChange(), servers, settings, run_id))
        pending = batch.progress.pending
        fleet = placement.fleet(batch_id, settings, run_id, requires_of(batch), pending=pending)
        wanted = RunRequest(
            batch_id,
            fleet,
            as_json,
            min_pass_rate,
            read_outputs(placement.outputs),
            launched=placement.launched,
        )
        return go_on(wanted, placement, servers, settings, console, interruption)


def retry_batch(
    batch_id: str,
    only: Sequence[str],
    placement: Placement,
    *,
    as_json: bool,
    min_pass_rate: float | None = None,
) -> int:
    """Try dead letters again, and drive the batch to its end; returns the exit code."""
    settings = placement.settings()
    console = Console(stderr=True, highlight=False)
    with ready(settings) as (servers, interruption):
        asyncio.run(_check_gate(batch_id, servers, min_pass_rate))
        run_id = placement.new_run()
        batch, reopened = asyncio.run(_ask_to_retry(batch_id, only, servers, settings, run_id))
        if not reopened:
            return _nothing_to_retry(batch_id, only, console, as_json=as_json)
        many = counted(reopened, "evaluation is", "evaluations are")
        console.print(f"{batch_id}: {many} tried again", markup=False, highlight=False)
        fleet = placement.fleet(batch_id, settings, run_id, requires_of(batch), pending=reopened)
        wanted = RunRequest(
            batch_id,
            fleet,
            as_json,
            min_pass_rate,
            read_outputs(placement.outputs),
            launched=placement.launched,
        )
        return go_on(wanted, placement, servers, settings, console, interruption)


async def _check_gate(batch_id: str, servers: Servers, min_pass_rate: float | None) -> None:
    """Refuse a gate for a batch without an evaluator."""
    if min_pass_rate is None:
        return
    async with connected(servers.postgres_url) as conn:
        snapshot = await read_snapshot(conn, batch_id)
    if not is_scored(snapshot.spec):
        raise CommandError(
            f"--min-pass-rate: {batch_id} has no evaluator, so nothing of it is scored. "
            "Run it again with one: --evaluator exact"
        )


def _nothing_to_retry(batch_id: str, only: Sequence[str], console: Console, *, as_json: bool) -> int:
    dead = batch_command("dlq", batch_id)
    if only:
        raise CommandError(f"{', '.join(only)}: not among the dead letters of {batch_id}. See: {dead}")
    if as_json:
        print(json.dumps({"batch_id": batch_id, "reopened": 0}), flush=True)  # noqa: T201 - for machines
    console.print(f"{batch_id}: no dead letters, nothing to retry", markup=False)
    return 0


async def _ask_to_resume(
    batch_id: str, budget: BudgetChange, servers: Servers, settings: Settings, run_id: str
) -> Batch:
    async with operator(servers, settings) as asking:
        return await asking.resume(batch_id, budget=budget, run_id=run_id)


async def _ask_in_batches(
    batch_id: str, servers: Servers, settings: Settings, *, wanted: bool | str
) -> MovedCounts:
    async with operator(servers, settings) as asking:
        return await asking.ask_in_batches(batch_id, read_batch_api(wanted))


def _who_asks(moved: MovedCounts) -> str:
    many = counted(moved.to_providers, "evaluation goes", "evaluations go")
    taken = f" ({moved.withdrawn:,} withdrawn from executors)" if moved.withdrawn else ""
    rest = "; evaluations that executors have started finish there" if moved.to_executors else ""
    return f"{many} to provider batches{taken}{rest}."


async def _ask_to_retry(
    batch_id: str, only: Sequence[str], servers: Servers, settings: Settings, run_id: str
) -> tuple[Batch, int]:
    async with operator(servers, settings) as asking:
        reopened = await asking.retry(batch_id, only=only, run_id=run_id)
        return await asking.batch(batch_id), reopened
