"""`scoreline batch list|status|dlq|export|compare`: reports about batches."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scoreline.cli.option_models import filled

if TYPE_CHECKING:
    from scoreline.reports.compare import Gate
    from scoreline.reports.export import ExportRequest

BATCH = typer.Argument(metavar="BATCH", help="Batch id.", show_default=False)
LIST_EPILOG = "Example: scoreline batch list --status running --json"
STATUS_EPILOG = (
    "Exit codes: 0 running or completed, 3 completed with dead letters, "
    "4 paused, cancelled or expired, 5 completed over budget.\n\n"
    "Examples: scoreline batch status nightly   ·   scoreline batch status nightly --watch --alert"
)
DLQ_EPILOG = "Example: scoreline batch dlq nightly --limit 200 --json"
EXPORT_EPILOG = (
    "Examples: scoreline batch export nightly -o results.jsonl   ·   "
    "scoreline batch export nightly -o report.xml   ·   scoreline batch export nightly -o - | head"
)
COMPARE_EPILOG = (
    "Exit codes: 0, or 101 for a regression with --fail-on-regression.\n\n"
    "Examples: scoreline batch compare nightly-1 nightly-2 --all   ·   "
    "scoreline batch compare nightly-1 nightly-2 --fail-on-regression --significant"
)
EVERYTHING = 1_000_000


def list_(
    *,
    status: Annotated[
        str | None,
        typer.Option(help="Filter by status: running, paused, completed, cancelled, expired or external."),
    ] = None,
    project: Annotated[str | None, typer.Option(help="Filter by project.")] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=100_000, help="Maximum number of rows, newest first.")
    ] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
) -> None:
    """List batches, newest first."""
    from scoreline.local.servers import ready_postgres
    from scoreline.reports.batch_status import STATUSES
    from scoreline.reports.listing import run_list
    from scoreline.settings import load_settings

    if status is not None and status not in STATUSES:
        raise typer.BadParameter(f"{status!r} is none of {', '.join(STATUSES)}", param_hint="--status")
    with ready_postgres(load_settings()) as servers:
        code = run_list(servers, status=status, project=project, limit=limit, as_json=as_json)
    raise typer.Exit(code)


def status(
    batch: Annotated[str, BATCH],
    *,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh until the batch is over.")] = False,
    alert: Annotated[
        bool,
        typer.Option("--alert", help="Show alerts: value, threshold, age, command to run [EVAL_ALERT_…]."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object; with --watch one per line.")
    ] = False,
) -> None:
    """Show the status of a batch, what it waits for, and its rate."""
    from scoreline.local.servers import ready_postgres
    from scoreline.reports.status import StatusRequest, run_status
    from scoreline.settings import load_settings

    settings = load_settings()
    request = StatusRequest(batch, watching=watch, alerting=alert, as_json=as_json)
    with ready_postgres(settings) as servers:
        code = run_status(servers, settings, request)
    raise typer.Exit(code)


def dlq(
    batch: Annotated[str, BATCH],
    *,
    limit: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="Maximum number of rows, newest first.")
    ] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
) -> None:
    """List the dead letters of a batch, their errors, and how to retry them."""
    from scoreline.local.servers import ready_postgres
    from scoreline.reports.dlq import run_dlq
    from scoreline.settings import load_settings

    with ready_postgres(load_settings()) as servers:
        code = run_dlq(servers, batch, limit=limit, as_json=as_json)
    raise typer.Exit(code)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """Flags of `batch export`."""

    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Output file; - is standard output.")
    ]
    form: Annotated[
        str | None,
        typer.Option("--format", help="jsonl, json, csv, junit or parquet; default: by FILE's suffix."),
    ] = None
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False
    failed: Annotated[bool, typer.Option("--failed", help="Only evaluations that did not pass.")] = False
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object about the export.")] = False

    def request(self, batch: str) -> "ExportRequest":
        """Return what to export; raises `BadParameter`."""
        from scoreline.reports.export import ExportRequest

        if self.as_json and str(self.output) == "-":
            raise typer.BadParameter("--json and -o - do not go together: both want standard output")
        form = _format(self.output, self.form)
        return ExportRequest(batch, self.output, form, self.force, self.as_json, self.failed)


@filled
def export(batch: Annotated[str, BATCH], *, options: ExportOptions) -> None:
    """Write all results of a batch to a file, in the order of its dataset."""
    from scoreline.local.servers import ready_postgres
    from scoreline.reports.export import check_parquet, run_export
    from scoreline.settings import load_settings

    request = options.request(batch)
    check_parquet(request)
    with ready_postgres(load_settings()) as servers:
        code = run_export(servers, request)
    raise typer.Exit(code)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """Flags of `batch compare`."""

    limit: Annotated[
        int, typer.Option(min=0, max=1_000_000, help="Maximum number of changed cases of each kind.")
    ] = 10
    everything: Annotated[bool, typer.Option("--all", help="Show every changed case.")] = False
    fail_on_regression: Annotated[
        bool,
        typer.Option("--fail-on-regression", help="Exit with 101 if a case that passed does not pass now."),
    ] = False
    significant: Annotated[
        bool,
        typer.Option(
            "--significant", help="With --fail-on-regression: only if significant (McNemar, p < 0.05)."
        ),
    ] = False
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False

    def gate(self) -> "Gate":
        """Return the gate on regressions; raises `BadParameter`."""
        from scoreline.reports.compare import Gate

        if self.significant and not self.fail_on_regression:
            raise typer.BadParameter("--significant goes with --fail-on-regression")
        if not self.fail_on_regression:
            return Gate.NONE
        return Gate.SIGNIFICANT if self.significant else Gate.ANY


@filled
def compare(
    first: Annotated[str, typer.Argument(metavar="A", help="Baseline batch id.", show_default=False)],
    second: Annotated[
        str, typer.Argument(metavar="B", help="Batch id to compare with the baseline.", show_default=False)
    ],
    *,
    options: CompareOptions,
) -> None:
    """Compare two batches case by case: regressions, improvements, and their significance."""
    from scoreline.local.servers import ready_postgres
    from scoreline.reports.compare import run_compare
    from scoreline.settings import load_settings

    gate = options.gate()
    limit = EVERYTHING if options.everything else options.limit
    with ready_postgres(load_settings()) as servers:
        code = run_compare(servers, (first, second), limit=limit, as_json=options.as_json, gate=gate)
    raise typer.Exit(code)


def _format(output: Path, form: str | None) -> Any:  # noqa: ANN401 - its type is imported only where it is needed
    from scoreline.reports.export import Format, format_of

    known = ", ".join(Format)
    if form is not None and form not in set(Format):
        raise typer.BadParameter(f"{form!r} is none of {known}", param_hint="--format")
    found = Format(form) if form else format_of(output)
    if found is None:
        raise typer.BadParameter(
            f"the name {output.name!r} has no known suffix; give one of {known}", param_hint="--format"
        )
    return found
