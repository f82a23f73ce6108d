"""`scoreline batch run` and `batch resume`: from a spec to scorecards."""

from pathlib import Path
from typing import Annotated

import typer

RUN_EPILOG = (
    "Ends with 0 if all is well, 3 if something was given up (see: scoreline batch dlq), 4 if paused, "
    "cancelled or out of time, 100 if below --min-pass-rate, 130 if interrupted.\n\n"
    "Examples: scoreline batch run -c scoreline.yaml   ·   "
    "scoreline batch run --dataset qa.jsonl --target python:app:answer --evaluator exact   ·   "
    "scoreline batch run --mode simulated --workers 4 --limit 10000   ·   "
    "scoreline batch run -o report.xml -o results.csv"
)
RESUME_EPILOG = (
    "Examples: scoreline batch resume gsm8k-4fk2zq   ·   scoreline batch resume gsm8k-4fk2zq --max-cost 10"
)
Batch = Annotated[str, typer.Argument(metavar="BATCH", help="Batch id.", show_default=False)]
Distributed = Annotated[
    bool, typer.Option("--distributed/--local", help="Use the fleet at the given URLs, or this machine.")
]
Workers = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=256,
        help="Executors to start here: 1 to 4 by the number of cases, or none with --distributed.",
    ),
]
Concurrency = Annotated[
    int | None, typer.Option(min=1, max=10_000, help="Slots of each of them [EVAL_WORKER_CONCURRENCY].")
]
Queue = Annotated[str | None, typer.Option(help="URL of the Redis to use [EVAL_REDIS_URL].")]
Outputs = Annotated[
    list[Path] | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Export at the end (repeatable): .json .jsonl .csv .xml .parquet; replaces FILE.",
    ),
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", help="Log every step of its processes to standard error [EVAL_LOG_LEVEL=DEBUG]."
    ),
]
Detach = Annotated[bool, typer.Option("--detach", help="Return at once; the batch runs in the background.")]
BatchApi = Annotated[
    bool | None,
    typer.Option("--batch-api/--no-batch-api", help="Use the provider's batch API: slower, cheaper."),
]
BatchFallback = Annotated[
    str | None,
    typer.Option(
        metavar="resubmit|sync", help="Requests that a provider batch loses: submit again, or call."
    ),
]
MinPassRate = Annotated[
    float | None, typer.Option(min=0, max=1, help="Exit with 100 if the pass rate is lower.")
]
MaxCost = Annotated[
    str | None, typer.Option(metavar="USD", help="Raise its budget, or take that limit away: none.")
]
MaxTokens = Annotated[
    str | None,
    typer.Option(metavar="N", help="Raise its tokens, or take that limit away: none."),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Standard output carries one JSON object, and nothing else.")
]


def run(  # noqa: PLR0913 - a command has its flags
    *,
    spec: Annotated[
        Path | None, typer.Option("--config", "-c", metavar="FILE", help="The spec: scoreline.yaml.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Batch name.")] = None,
    project: Annotated[str | None, typer.Option(help="Project of the batch.")] = None,
    dataset: Annotated[str | None, typer.Option(help="A file, or the name of an imported dataset.")] = None,
    records: Annotated[str | None, typer.Option(help="Path of the list of cases in the file.")] = None,
    id_: Annotated[str | None, typer.Option("--id", help="Column of the case ids.")] = None,
    input_: Annotated[str | None, typer.Option("--input", help="Column of the inputs.")] = None,
    expected: Annotated[str | None, typer.Option(help="Column of the expected values.")] = None,
    prompt: Annotated[list[str] | None, typer.Option(help="Prompt template (repeatable).")] = None,
    target: Annotated[list[str] | None, typer.Option(help="Target to evaluate (repeatable).")] = None,
    evaluator: Annotated[list[str] | None, typer.Option(help="Evaluator (repeatable).")] = None,
    mode: Annotated[str | None, typer.Option(help="simulated: a dry run that calls nothing.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Maximum number of cases.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only cases with this tag (repeatable).")] = None,
    repetitions: Annotated[int | None, typer.Option(min=1, help="Repetitions of each case.")] = None,
    retries: Annotated[
        int | None, typer.Option(min=0, help="Retries of an evaluation after transient faults.")
    ] = None,
    timeout: Annotated[str | None, typer.Option(help="For one call: 30, 5m, 1h.")] = None,
    max_duration: Annotated[str | None, typer.Option(help="For the whole batch: 2h.")] = None,
    priority: Annotated[int | None, typer.Option(min=1, max=100, help="Its share of the slots.")] = None,
    cache: Annotated[
        bool | None, typer.Option("--cache/--no-cache", help="Reuse answers of earlier batches.")
    ] = None,
    batch_api: BatchApi = None,
    batch_fallback: BatchFallback = None,
    min_pass_rate: MinPassRate = None,
    rpm_limit: Annotated[
        list[str] | None,
        typer.Option(metavar="[NAME=]N", help="Requests a minute of each lane, or of one target or judge."),
    ] = None,
    tpm_limit: Annotated[
        list[str] | None,
        typer.Option(metavar="[NAME=]N", help="Tokens a minute of each lane, or of one target or judge."),
    ] = None,
    max_concurrency: Annotated[
        list[str] | None,
        typer.Option(metavar="[NAME=]N", help="Calls in flight: of the batch, of each lane, or of one."),
    ] = None,
    delay: Annotated[
        list[str] | None,
        typer.Option(metavar="[NAME=]SECONDS", help="Between two calls on a lane, at least."),
    ] = None,
    max_cost: Annotated[
        str | None, typer.Option(metavar="USD", help="Pause once so much is spent.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Token budget; the batch pauses when it is spent.")
    ] = None,
    fail_fast_after: Annotated[
        int | None, typer.Option(min=0, help="Consecutive failures after which the batch pauses; 0: never.")
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LABEL", help="Label that executors of the fleet must declare to serve it (repeatable)."
        ),
    ] = None,
    distributed: Annotated[
        bool,
        typer.Option("--distributed/--local", help="Use the fleet at the given URLs, or this machine."),
    ] = False,
    workers: Workers = None,
    concurrency: Concurrency = None,
    queue: Queue = None,
    detach: Detach = False,
    preflight: Annotated[
        bool,
        typer.Option(
            "--preflight/--no-preflight", help="Check modules, programs, keys, hosts and data first."
        ),
    ] = True,
    verbose: Verbose = False,
    output: Outputs = None,
    watch: Annotated[bool, typer.Option("--watch", help="Show progress to the end (the default).")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a batch: every case, with every prompt and target, scored."""
    from scoreline.local.run import Where, run_batch
    from scoreline.submit.spec.limit_flags import split_limit_flags

    limits, named_limits = split_limit_flags(
        {"rpm": rpm_limit, "tpm": tpm_limit, "max_concurrency": max_concurrency, "delay": delay}
    )
    flags = {
        "name": name,
        "project": project,
        "dataset": dataset,
        "records": records,
        "id": id_,
        "input": input_,
        "expected": expected,
        "prompts": prompt,
        "targets": target,
        "evaluators": evaluator,
        "mode": mode,
        "limit": limit,
        "tag": tag,
        "repetitions": repetitions,
        "retries": retries,
        "timeout": timeout,
        "max_duration": max_duration,
        "priority": priority,
        "cache": cache,
        "batch_api": _batch_api(batch_api, batch_fallback),
        "min_pass_rate": min_pass_rate,
        "limits": limits or None,
        "named_limits": named_limits,
        "max_concurrency": limits.get("max_concurrency"),
        "max_cost": max_cost,
        "max_tokens": max_tokens,
        "fail_fast_after": fail_fast_after,
        "requires": require,
    }
    where = Where(
        distributed=distributed,
        workers=workers,
        concurrency=concurrency,
        queue=queue,
        detach=detach,
        verbose=verbose,
        checks=preflight,
        outputs=tuple(output or ()),
    )
    if watch and detach:
        raise typer.BadParameter("--watch stays until the end, --detach returns at once")
    raise typer.Exit(run_batch(spec, flags, where, as_json=as_json))


def resume(  # noqa: PLR0913 - as above
    batch: Batch,
    *,
    distributed: Annotated[
        bool,
        typer.Option("--distributed/--local", help="Use the fleet at the given URLs, or this machine."),
    ] = False,
    workers: Workers = None,
    concurrency: Concurrency = None,
    queue: Queue = None,
    detach: Detach = False,
    verbose: Verbose = False,
    output: Outputs = None,
    min_pass_rate: MinPassRate = None,
    max_cost: MaxCost = None,
    max_tokens: MaxTokens = None,
    batch_api: BatchApi = None,
    batch_fallback: BatchFallback = None,
    as_json: AsJson = False,
) -> None:
    """Go on with a batch that was paused, or whose command is gone."""
    from scoreline.local.run import Where, resume_batch
    from scoreline.reports.budgets import read_budget

    budget = read_budget(max_cost=max_cost, max_tokens=max_tokens)
    where = Where(
        distributed=distributed,
        workers=workers,
        concurrency=concurrency,
        queue=queue,
        detach=detach,
        verbose=verbose,
        outputs=tuple(output or ()),
    )
    code = resume_batch(
        batch,
        where,
        as_json=as_json,
        min_pass_rate=min_pass_rate,
        budget=budget,
        batch_api=_batch_api(batch_api, batch_fallback),
    )
    raise typer.Exit(code)


def _batch_api(wanted: bool | None, fallback: str | None) -> bool | str | None:  # noqa: FBT001 - a flag as it was typed
    """Put two flags together that are one key."""
    if fallback is None:
        return wanted
    if wanted is False or fallback not in ("resubmit", "sync"):
        raise typer.BadParameter("--batch-fallback is resubmit or sync, and goes with --batch-api")
    return fallback
