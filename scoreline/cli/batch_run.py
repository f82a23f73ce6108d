"""`scoreline batch run`, `resume` and `retry`: from a spec to scorecards."""

from typing import Annotated

import typer

from scoreline.cli.batch_options import Batch, BatchOptions, ProviderBatchOptions, RunOptions
from scoreline.cli.option_models import filled

RUN_EPILOG = (
    "Exit codes: 0 no dead letters, 3 dead letters (see: scoreline batch dlq), 4 paused, "
    "cancelled or expired, 5 over budget, 100 below --min-pass-rate, 130 interrupted.\n\n"
    "Examples: scoreline batch run -c scoreline.yaml   ·   "
    "scoreline batch run --dataset qa.jsonl --target python:app:answer --evaluator exact   ·   "
    "scoreline batch run --mode simulated --workers 4 --limit 10000   ·   "
    "scoreline batch run -o report.xml -o results.csv"
)
RESUME_EPILOG = (
    "Examples: scoreline batch resume gsm8k-4fk2zq   ·   scoreline batch resume gsm8k-4fk2zq --max-cost 10"
)
RETRY_EPILOG = (
    "Examples: scoreline batch retry gsm8k-4fk2zq   ·   "
    "scoreline batch retry gsm8k-4fk2zq --only gsm8k-4fk2zq.00000017"
)
MaxCost = Annotated[str | None, typer.Option(metavar="USD", help="New cost budget, or none for no limit.")]
MaxTokens = Annotated[str | None, typer.Option(metavar="N", help="New token budget, or none for no limit.")]
Only = Annotated[
    list[str] | None, typer.Option(help="Evaluation id (repeatable); default: all dead letters.")
]


@filled
def run(
    *,
    batch: BatchOptions,
    provider_batches: ProviderBatchOptions,
    options: RunOptions,
    preflight: Annotated[
        bool,
        typer.Option(
            "--preflight/--no-preflight", help="Check modules, programs, keys, hosts and data first."
        ),
    ] = True,
    watch: Annotated[bool, typer.Option("--watch", help="Show progress to the end (the default).")] = False,
) -> None:
    """Run a batch: every case, with every prompt and target, scored."""
    if watch and options.detach:
        raise typer.BadParameter("--watch stays until the end, --detach returns at once")
    flags = batch.flags() | {
        "batch_api": provider_batches.value(),
        "min_pass_rate": options.min_pass_rate,
    }
    with options.launched as launched:
        from scoreline.local.run import run_batch

        placement = options.placement(launched, checks=preflight)
        code = run_batch(batch.config, flags, placement, as_json=options.as_json)
    raise typer.Exit(code)


@filled
def resume(
    batch: Batch,
    *,
    options: RunOptions,
    provider_batches: ProviderBatchOptions,
    max_cost: MaxCost = None,
    max_tokens: MaxTokens = None,
) -> None:
    """Resume a batch that is paused, or whose command was interrupted."""
    with options.launched as launched:
        from scoreline.local.resume import resume_batch
        from scoreline.reports.budgets import read_budget

        code = resume_batch(
            batch,
            options.placement(launched),
            as_json=options.as_json,
            min_pass_rate=options.min_pass_rate,
            budget=read_budget(max_cost=max_cost, max_tokens=max_tokens),
            batch_api=provider_batches.value(),
        )
    raise typer.Exit(code)


@filled
def retry(batch: Batch, *, only: Only = None, options: RunOptions) -> None:
    """Retry dead letters: evaluations that failed or timed out, all or a selection."""
    with options.launched as launched:
        from scoreline.local.resume import retry_batch

        code = retry_batch(
            batch,
            only or (),
            options.placement(launched),
            as_json=options.as_json,
            min_pass_rate=options.min_pass_rate,
        )
    raise typer.Exit(code)
