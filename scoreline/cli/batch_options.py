"""Flags that `batch run`, `batch resume` and `batch retry` share, and the flags that describe a batch."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from scoreline.local.fork_server_launch import LaunchedServer
    from scoreline.local.run import Placement

Batch = Annotated[str, typer.Argument(metavar="BATCH", help="Batch id.", show_default=False)]
Texts = list[str] | None
_LIMITS = {"rpm": "rpm_limit", "tpm": "tpm_limit", "max_concurrency": "max_concurrency", "delay": "delay"}
"""Limits of a spec, and the flags that set them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions:
    """Flags that describe a batch; a field is named as the key of the spec that it overrides."""

    config: Annotated[
        Path | None, typer.Option("--config", "-c", metavar="FILE", help="Spec file (scoreline.yaml).")
    ] = None
    name: Annotated[str | None, typer.Option(help="Batch name.")] = None
    project: Annotated[str | None, typer.Option(help="Project of the batch.")] = None
    dataset: Annotated[str | None, typer.Option(help="Dataset file, or name of an imported dataset.")] = (
        None
    )
    records: Annotated[str | None, typer.Option(help="Path of the list of cases in the file.")] = None
    id: Annotated[str | None, typer.Option("--id", help="Column of the case ids.")] = None
    input: Annotated[str | None, typer.Option("--input", help="Column of the inputs.")] = None
    expected: Annotated[str | None, typer.Option(help="Column of the expected values.")] = None
    prompts: Annotated[Texts, typer.Option("--prompt", help="Prompt template (repeatable).")] = None
    targets: Annotated[Texts, typer.Option("--target", help="Target to evaluate (repeatable).")] = None
    evaluators: Annotated[Texts, typer.Option("--evaluator", help="Evaluator (repeatable).")] = None
    mode: Annotated[str | None, typer.Option(help="simulated: a dry run that calls nothing.")] = None
    limit: Annotated[int | None, typer.Option(min=1, help="Maximum number of cases.")] = None
    tag: Annotated[Texts, typer.Option(help="Only cases with this tag (repeatable).")] = None
    repetitions: Annotated[int | None, typer.Option(min=1, help="Repetitions of each case.")] = None
    retries: Annotated[
        int | None, typer.Option(min=0, help="Retries of an evaluation after transient faults.")
    ] = None
    timeout: Annotated[str | None, typer.Option(help="Timeout of one call: 30, 5m, 1h.")] = None
    max_duration: Annotated[str | None, typer.Option(help="Timeout of the batch: 2h.")] = None
    priority: Annotated[
        int | None, typer.Option(min=1, max=100, help="Weight of the batch when executors share slots.")
    ] = None
    cache: Annotated[
        bool | None, typer.Option("--cache/--no-cache", help="Reuse answers of earlier batches.")
    ] = None
    rpm_limit: Annotated[
        Texts,
        typer.Option(
            metavar="[NAME=]N", help="Requests per minute of each lane, or of one target or judge."
        ),
    ] = None
    tpm_limit: Annotated[
        Texts,
        typer.Option(metavar="[NAME=]N", help="Tokens per minute of each lane, or of one target or judge."),
    ] = None
    max_concurrency: Annotated[
        Texts,
        typer.Option(metavar="[NAME=]N", help="Concurrent calls: of the batch, of each lane, or of one."),
    ] = None
    delay: Annotated[
        Texts, typer.Option(metavar="[NAME=]SECONDS", help="Minimum delay between two calls on a lane.")
    ] = None
    max_cost: Annotated[
        str | None,
        typer.Option(metavar="USD", help="Cost budget; the batch pauses before it exceeds it."),
    ] = None
    max_tokens: Annotated[
        int | None,
        typer.Option(min=1, help="Token budget; the batch pauses before it exceeds it."),
    ] = None
    fail_fast_after: Annotated[
        int | None, typer.Option(min=0, help="Consecutive failures after which the batch pauses; 0: never.")
    ] = None
    requires: Annotated[
        Texts,
        typer.Option("--require", metavar="LABEL", help="Label that executors must declare (repeatable)."),
    ] = None

    def flags(self) -> dict[str, Any]:
        """Return the given values by the keys of the spec that they override."""
        from scoreline.submit.spec.limit_flags import split_limit_flags

        limits, named = split_limit_flags({limit: getattr(self, flag) for limit, flag in _LIMITS.items()})
        keys = {each.name for each in fields(self)} - {"config", *_LIMITS.values()}
        return {
            **{key: getattr(self, key) for key in keys},
            "limits": limits or None,
            "named_limits": named,
            "max_concurrency": limits.get("max_concurrency"),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderBatchOptions:
    """Flags for the batch API of a provider; both together are one key of the spec."""

    batch_api: Annotated[
        bool | None,
        typer.Option("--batch-api/--no-batch-api", help="Use the provider's batch API: slower, cheaper."),
    ] = None
    batch_fallback: Annotated[
        str | None,
        typer.Option(
            metavar="resubmit|sync", help="Requests without an answer: resubmit, or sync (call the model)."
        ),
    ] = None

    def value(self) -> bool | str | None:
        """Return the value of the key `batch_api`."""
        if self.batch_fallback is None:
            return self.batch_api
        if self.batch_api is False or self.batch_fallback not in ("resubmit", "sync"):
            raise typer.BadParameter("--batch-fallback is resubmit or sync, and goes with --batch-api")
        return self.batch_fallback


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Flags of every command that runs a batch: where it runs and how it is followed."""

    distributed: Annotated[
        bool,
        typer.Option("--distributed/--local", help="Use the fleet at the given URLs, or this machine."),
    ] = False
    workers: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=256,
            help="Executors to start here: 1 to 4 by the number of cases; with --distributed 0.",
        ),
    ] = None
    concurrency: Annotated[
        int | None,
        typer.Option(min=1, max=10_000, help="Slots of each executor [EVAL_WORKER_CONCURRENCY]."),
    ] = None
    queue: Annotated[str | None, typer.Option(help="Redis URL [EVAL_REDIS_URL].")] = None
    detach: Annotated[
        bool, typer.Option("--detach", help="Return at once; the batch runs in the background.")
    ] = False
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Debug log on standard error [EVAL_LOG_LEVEL=DEBUG].")
    ] = False
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Export at the end (repeatable): .json .jsonl .csv .xml .parquet; replaces FILE.",
        ),
    ] = None
    min_pass_rate: Annotated[
        float | None, typer.Option(min=0, max=1, help="Exit with 100 if the pass rate is lower.")
    ] = None
    as_json: Annotated[
        bool, typer.Option("--json", help="Standard output carries one JSON object, and nothing else.")
    ] = False

    @property
    def launched(self) -> "AbstractContextManager[LaunchedServer | None]":
        """Lend the fork server of the processes that this command will start, which imports from now on."""
        import os

        from scoreline.local.fork_server_launch import launched

        is_elsewhere = self.detach or (self.distributed and not self.workers)
        return launched(os.environ, wanted=not is_elsewhere)

    def placement(self, launched: "LaunchedServer | None" = None, *, checks: bool = True) -> "Placement":
        """Return where the batch runs."""
        from scoreline.local.run import Placement

        if self.workers == 0 and not self.distributed:
            raise typer.BadParameter("0 executors goes with --distributed", param_hint="--workers")
        return Placement(
            distributed=self.distributed,
            workers=self.workers,
            concurrency=self.concurrency,
            queue=self.queue,
            detach=self.detach,
            verbose=self.verbose,
            checks=checks,
            outputs=tuple(self.output or ()),
            launched=launched,
        )
