"""`scoreline batch status`: the progress of a batch, why it makes none, and the command that helps."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from rich.console import Console, RenderableType
from rich.text import Text

from scoreline.formatting import excerpt, money, printable, span, stamp
from scoreline.invocation import batch_command
from scoreline.reports.alerts.table import alert_table
from scoreline.reports.alerts.tracker import AlertChange, AlertReporter, AlertTracker
from scoreline.reports.batch_poller import BatchPoller, Connectivity
from scoreline.reports.batch_status import ExitCode, document, exit_code, is_over, status_word
from scoreline.reports.batch_view import BatchView, read_batch_view
from scoreline.reports.fleet_status import FleetReader, fleet_reader
from scoreline.reports.lanes import lanes_document, limit_lines
from scoreline.reports.pace import average, remaining
from scoreline.reports.pass_rate import batch_pass_rate, is_scored, variant_pass_rate
from scoreline.reports.progress_line import PLAIN_EVERY, ProgressDisplay, bar, facts_of
from scoreline.reports.provider_batches import discount_line, provider_document
from scoreline.reports.report import report_document
from scoreline.reports.report_text import report_lines
from scoreline.reports.screen import screen
from scoreline.reports.stall_reasons import reasons
from scoreline.reports.table import Column, fitted
from scoreline.servers.addresses import Servers
from scoreline.servers.connection import connected
from scoreline.settings import Settings

LABEL_SHOWN = 60
NO_RESULTS: dict[str, Any] = {"results": [], "failed_first": [], "dead_letter_reasons": []}
ALERTING_EVERY = timedelta(seconds=5)
"""How often a progress line is printed with `--alert`."""


@dataclass(frozen=True, slots=True)
class StatusRequest:
    """The batch whose status is shown, and the options of the command."""

    batch_id: str
    watching: bool = False
    alerting: bool = False
    as_json: bool = False


def run_status(servers: Servers, settings: Settings, request: StatusRequest) -> int:
    """Show the status of a batch, once or until it is over; returns the exit code."""
    return asyncio.run(_status(servers, request, settings))


async def _status(servers: Servers, request: StatusRequest, settings: Settings) -> int:
    console = screen()
    tracker = AlertTracker(settings.thresholds)
    write = _printing(console, as_json=request.as_json)
    reporter = AlertReporter(write, request.as_json, tracker, settings.runbook_url)
    changes: list[AlertChange] | None = None
    async with fleet_reader(servers.redis_url) as fleet:
        view = await read_full_view(servers, request.batch_id, fleet)
        if request.watching and not is_over(view.snapshot):
            on_connectivity = reporter.postgres_changed if request.alerting else _print_connectivity
            poller = BatchPoller(servers.postgres_url, request.batch_id, fleet, on_connectivity)
            await _watch(poller, console, request, reporter)
            view = await read_full_view(servers, request.batch_id, fleet)
        elif request.alerting:
            changes = reporter.report_once(view)
    if request.as_json:
        _print_json(view)
    else:
        if changes is not None:
            _print_alerts(console, changes, runbook=settings.runbook_url)
        show(console, view)
    return ExitCode.STOPPED if request.watching and view.is_abandoned else exit_code(view.snapshot)


async def read_full_view(servers: Servers, batch_id: str, fleet: FleetReader) -> BatchView:
    """Read every row of a batch; raises `CommandError` with the nearest ids if there is no such batch."""
    async with connected(servers.postgres_url) as conn:
        return await read_batch_view(conn, batch_id, fleet, every_row=True)


async def _watch(
    poller: BatchPoller, console: Console, request: StatusRequest, reporter: AlertReporter
) -> None:
    every = ALERTING_EVERY if request.alerting else PLAIN_EVERY
    with ProgressDisplay(console, every=every, stamped=request.alerting) as display:

        def on_view(view: BatchView) -> None:
            if request.alerting:
                reporter.update(view)
            if request.as_json:
                _print_json(view)
            else:
                # A local run may be starting; if none is, the last screen has the reason.
                remarks = () if view.is_abandoned else reasons(view)
                display.show(view.snapshot, view.fleet, remarks=remarks)

        await poller.until_over(on_view)


def _printing(console: Console, *, as_json: bool) -> Callable[[str], None]:
    """Return the function that prints alerts, above the progress bar where there is one."""
    if as_json:
        return lambda line: print(line, flush=True)  # noqa: T201 - machines read stdout
    return lambda line: console.print(Text(line, style="yellow"), soft_wrap=True)


def _print_alerts(console: Console, changes: Sequence[AlertChange], *, runbook: str | None) -> None:
    for line in alert_table(changes, runbook=runbook):
        console.print(line, soft_wrap=isinstance(line, Text))


def _print_connectivity(change: Connectivity) -> None:
    Console(stderr=True).print(change.value, markup=False, highlight=False, soft_wrap=True)


def _print_json(view: BatchView) -> None:
    print(json.dumps(view_document(view)), flush=True)  # noqa: T201 - machines read stdout


def view_document(view: BatchView) -> dict[str, Any]:
    """Return a view as JSON."""
    labels = {label.number: label for label in view.labels}
    return document(view.snapshot) | {
        "why": reasons(view),
        "waiting": {each.state: each.count for each in view.waiting} | {"unpublished": view.unpublished},
        "variants": [result._asdict() | _named(labels.get(result.variant)) for result in view.variants],
        "lanes": lanes_document(view.lanes),
        "provider_batches": provider_document(view.at_providers),
        **(report_document(view.report) if view.report else NO_RESULTS),
        "executors": None
        if view.fleet.unavailable
        else [
            {"name": each.name, "host": each.host, "busy": each.busy, "slots": each.slots}
            for each in view.fleet.serving(view.snapshot)
        ],
    }


def _named(label: Any) -> dict[str, str]:  # noqa: ANN401 - a label, or none
    return {"target": label.target, "prompt": label.prompt} if label else {}


def show(console: Console, view: BatchView) -> None:
    """Print the status of a batch."""
    for line in _screen(view, console.width):
        console.print(line, soft_wrap=isinstance(line, Text))


def _screen(view: BatchView, width: int) -> Iterator[RenderableType]:
    snapshot = view.snapshot
    name = f" “{printable(snapshot.name)}”" if snapshot.name else ""
    yield Text(f"{printable(snapshot.batch_id)}{name}, project {printable(snapshot.project)}")
    yield Text(f"accepted {stamp(snapshot.accepted_at)}, {_lasted(view)}{_cost(view)}")
    yield bar(snapshot, width)
    nothing_passed = is_over(snapshot) and batch_pass_rate(snapshot).value == 0
    yield Text(" · ".join(_facts(view)), style="bold red" if nothing_passed else "")
    yield from _results(view, width)
    if discount := discount_line(view.at_providers):
        yield Text(discount)
    if view.waiting or view.unpublished:
        yield Text(f"waiting: {_waiting_words(view)}")
    for reason in reasons(view):
        yield Text(reason, style="yellow")
    yield from map(Text, limit_lines(view.lanes))
    yield from map(Text, _next_steps(view))


def _cost(view: BatchView) -> str:
    """Return the cost of a batch without a budget; the line of a budget has its own figure."""
    budget = view.snapshot.budget
    has_budget = budget.max_cost_usd is not None or budget.max_tokens is not None
    return "" if has_budget or not view.report else f", cost {money(float(budget.spent_usd))}"


def _results(view: BatchView, width: int) -> Iterator[RenderableType]:
    """Return the results of a batch, or while it runs the progress of each variant."""
    if view.report:
        yield from report_lines(view.snapshot, view.report, width)
        yield Text()
    elif len(view.variants) > 1:
        yield Text()
        yield _variants(view, width)
        yield Text()


def _facts(view: BatchView) -> Iterator[str]:
    """Return the facts of one view: the average rate, and no estimate without a serving executor."""
    snapshot = view.snapshot
    rate = average(snapshot.progress.ended, snapshot.duration)
    is_served = view.fleet.unavailable or view.fleet.serving(snapshot) or snapshot.kind == "external"
    eta = remaining(snapshot.progress.pending, rate) if is_served else None
    return facts_of(snapshot, view.fleet, rate=rate, eta=eta, on_average=True)


def _lasted(view: BatchView) -> str:
    word = "lasted" if is_over(view.snapshot) and view.snapshot.finished_at else "for"
    if status_word(view.snapshot) in {"cancelled", "expired"} and view.snapshot.reason:
        return f"{word} {span(view.snapshot.duration)}, ended: {excerpt(view.snapshot.reason, 200)}"
    deadline = view.snapshot.deadline
    until = f", must end by {stamp(deadline)}" if deadline and view.snapshot.progress.pending else ""
    return f"{word} {span(view.snapshot.duration)}{until}"


def _waiting_words(view: BatchView) -> str:
    states = [f"{each.count:,} {each.state}" for each in view.waiting]
    return ", ".join([*states, *([f"{view.unpublished:,} not published"] if view.unpublished else [])])


def _variants(view: BatchView, width: int) -> RenderableType:
    figures = ("done", "passed", "mean score", "dead letters")
    columns = [Column("target"), Column("prompt"), *(Column(name, is_figure=True) for name in figures)]
    rows: list[list[Text | str]] = []
    labels = {label.number: label for label in view.labels}
    scored = is_scored(view.snapshot.spec)
    for result in view.variants:
        label = labels.get(result.variant)
        cells: list[Text | str] = [
            Text(excerpt(label.target, LABEL_SHOWN) if label else f"variant {result.variant}"),
            Text(excerpt(label.prompt, LABEL_SHOWN) if label else "-"),
            f"{result.ended:,}/{result.total:,}",
            str(variant_pass_rate(result, is_scored=scored)),
            "-" if result.score is None else f"{result.score:.3f}",
            f"{result.dead_letters:,}",
        ]
        rows.append(cells)
    return fitted(columns, rows, width)


def _next_steps(view: BatchView) -> Iterator[str]:
    batch_id = printable(view.snapshot.batch_id)
    if view.snapshot.progress.dead_letters and not view.report:
        yield f"Dead letters, and how to retry them: {batch_command('dlq', batch_id)}"
    if is_over(view.snapshot) and view.snapshot.progress.ended:
        yield f"All results: {batch_command('export', batch_id, '-o', 'results.jsonl')}"
    elif not is_over(view.snapshot) and not view.is_abandoned:
        yield f"To watch it: {batch_command('status', batch_id, '--watch')}"
