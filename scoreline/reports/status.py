"""`scoreline batch status`: how a batch stands, why it does not go on, and how it would."""

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
from scoreline.reports.crew import CrewReader, crew_reader
from scoreline.reports.lanes import lanes_document, limit_lines
from scoreline.reports.look import Look, take_look
from scoreline.reports.pace import average, remaining
from scoreline.reports.pass_rate import batch_pass_rate, is_scored, variant_pass_rate
from scoreline.reports.progress_line import PLAIN_EVERY, ProgressDisplay, bar, facts_of
from scoreline.reports.provider_batches import discount_line, provider_document
from scoreline.reports.report import report_document
from scoreline.reports.report_view import report_lines
from scoreline.reports.screen import screen
from scoreline.reports.standing import ExitCode, document, exit_code, is_over, status_word
from scoreline.reports.table import Column, fitted
from scoreline.reports.watch import Connectivity, Watcher
from scoreline.reports.why import reasons
from scoreline.servers.addresses import Servers
from scoreline.servers.connection import connected
from scoreline.settings import Settings

LABEL_SHOWN = 60
NO_RESULTS: dict[str, Any] = {"results": [], "failed_first": [], "dead_letter_reasons": []}
ALERTING_EVERY = timedelta(seconds=5)
"""How often a line says that all is well, where alerts are looked for."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be shown of a batch, and how."""

    batch_id: str
    watching: bool = False
    alerting: bool = False
    as_json: bool = False


def run_status(servers: Servers, settings: Settings, wanted: Wanted) -> int:
    """Show how a batch stands, once or until it is over; returns the exit code."""
    return asyncio.run(_status(servers, wanted, settings))


async def _status(servers: Servers, wanted: Wanted, settings: Settings) -> int:
    console = screen()
    tracker = AlertTracker(settings.thresholds)
    write = _printing(console, as_json=wanted.as_json)
    reporter = AlertReporter(write, wanted.as_json, tracker, settings.runbook_url)
    changes: list[AlertChange] | None = None
    async with crew_reader(servers.redis_url) as crew:
        look = await close_look(servers, wanted.batch_id, crew)
        if wanted.watching and not is_over(look.snapshot):
            on_connectivity = reporter.postgres_changed if wanted.alerting else _print_connectivity
            watcher = Watcher(servers.postgres_url, wanted.batch_id, crew, on_connectivity)
            await _watch(watcher, console, wanted, reporter)
            look = await close_look(servers, wanted.batch_id, crew)
        elif wanted.alerting:
            changes = reporter.report_once(look)
    if wanted.as_json:
        _print_json(look)
    else:
        if changes is not None:
            _print_alerts(console, changes, runbook=settings.runbook_url)
        show(console, look)
    return ExitCode.STOPPED if wanted.watching and look.is_abandoned else exit_code(look.snapshot)


async def close_look(servers: Servers, batch_id: str, crew: CrewReader) -> Look:
    """Look at every row of a batch; one that nobody knows becomes a problem that names those near it."""
    async with connected(servers.postgres_url) as conn:
        return await take_look(conn, batch_id, crew, closely=True)


async def _watch(watcher: Watcher, console: Console, wanted: Wanted, reporter: AlertReporter) -> None:
    every = ALERTING_EVERY if wanted.alerting else PLAIN_EVERY
    with ProgressDisplay(console, every=every, stamped=wanted.alerting) as display:

        def see(look: Look) -> None:
            if wanted.alerting:
                reporter.update(look)
            if wanted.as_json:
                _print_json(look)
            else:
                # A run may be starting; if none is, the screen at the end has the reason.
                remarks = () if look.is_abandoned else reasons(look)
                display.show(look.snapshot, look.crew, remarks=remarks)

        await watcher.until_over(see)


def _printing(console: Console, *, as_json: bool) -> Callable[[str], None]:
    """Return what prints alerts: above the bar where there is one."""
    if as_json:
        return lambda line: print(line, flush=True)  # noqa: T201 - machines read stdout
    return lambda line: console.print(Text(line, style="yellow"), soft_wrap=True)


def _print_alerts(console: Console, changes: Sequence[AlertChange], *, runbook: str | None) -> None:
    for line in alert_table(changes, runbook=runbook):
        console.print(line, soft_wrap=isinstance(line, Text))


def _print_connectivity(change: Connectivity) -> None:
    Console(stderr=True).print(change.value, markup=False, highlight=False, soft_wrap=True)


def _print_json(look: Look) -> None:
    print(json.dumps(look_document(look)), flush=True)  # noqa: T201 - machines read stdout


def look_document(look: Look) -> dict[str, Any]:
    """Write a look for machines."""
    labels = {label.number: label for label in look.labels}
    return document(look.snapshot) | {
        "why": reasons(look),
        "waiting": {each.state: each.count for each in look.waiting} | {"unpublished": look.unpublished},
        "variants": [result._asdict() | _named(labels.get(result.variant)) for result in look.variants],
        "lanes": lanes_document(look.lanes),
        "provider_batches": provider_document(look.at_providers),
        **(report_document(look.report) if look.report else NO_RESULTS),
        "executors": None
        if look.crew.away
        else [
            {"name": each.name, "host": each.host, "busy": each.busy, "slots": each.slots}
            for each in look.crew.serving(look.snapshot)
        ],
    }


def _named(label: Any) -> dict[str, str]:  # noqa: ANN401 - a label, or none
    return {"target": label.target, "prompt": label.prompt} if label else {}


def show(console: Console, look: Look) -> None:
    """Print the screen."""
    for line in _screen(look, console.width):
        console.print(line, soft_wrap=isinstance(line, Text))


def _screen(look: Look, width: int) -> Iterator[RenderableType]:
    snapshot = look.snapshot
    name = f" “{printable(snapshot.name)}”" if snapshot.name else ""
    yield Text(f"{printable(snapshot.batch_id)}{name}, project {printable(snapshot.project)}")
    yield Text(f"accepted {stamp(snapshot.accepted_at)}, {_lasted(look)}{_cost(look)}")
    yield bar(snapshot, width)
    nothing_passed = is_over(snapshot) and batch_pass_rate(snapshot).value == 0
    yield Text(" · ".join(_facts(look)), style="bold red" if nothing_passed else "")
    yield from _results(look, width)
    if discount := discount_line(look.at_providers):
        yield Text(discount)
    if look.waiting or look.unpublished:
        yield Text(f"waiting: {_waiting_words(look)}")
    for reason in reasons(look):
        yield Text(reason, style="yellow")
    yield from map(Text, limit_lines(look.lanes))
    yield from map(Text, _next_steps(look))


def _cost(look: Look) -> str:
    """Write what a batch without a budget cost; where there is a budget, its own line has the figure."""
    budget = look.snapshot.budget
    has_budget = budget.max_cost_usd is not None or budget.max_tokens is not None
    return "" if has_budget or not look.report else f", cost {money(float(budget.spent_usd))}"


def _results(look: Look, width: int) -> Iterator[RenderableType]:
    """Show what the batch came to, or while it runs how each variant stands."""
    if look.report:
        yield from report_lines(look.snapshot, look.report, width)
        yield Text()
    elif len(look.variants) > 1:
        yield Text()
        yield _variants(look, width)
        yield Text()


def _facts(look: Look) -> Iterator[str]:
    """Say what one look can tell: the rate of the whole time, and no end where nobody works."""
    snapshot = look.snapshot
    rate = average(snapshot.done, snapshot.duration)
    attended = look.crew.away or look.crew.serving(snapshot) or snapshot.kind == "external"
    eta = remaining(snapshot.pending, rate) if attended else None
    return facts_of(snapshot, look.crew, rate=rate, eta=eta, on_average=True)


def _lasted(look: Look) -> str:
    word = "lasted" if is_over(look.snapshot) and look.snapshot.finished_at else "for"
    if status_word(look.snapshot) in {"cancelled", "expired"} and look.snapshot.reason:
        return f"{word} {span(look.snapshot.duration)}, ended: {excerpt(look.snapshot.reason, 200)}"
    deadline = look.snapshot.deadline
    until = f", must end by {stamp(deadline)}" if deadline and look.snapshot.pending else ""
    return f"{word} {span(look.snapshot.duration)}{until}"


def _waiting_words(look: Look) -> str:
    states = [f"{each.count:,} {each.state}" for each in look.waiting]
    return ", ".join([*states, *([f"{look.unpublished:,} not published"] if look.unpublished else [])])


def _variants(look: Look, width: int) -> RenderableType:
    figures = ("done", "passed", "mean score", "dead letters")
    columns = [Column("target"), Column("prompt"), *(Column(name, is_figure=True) for name in figures)]
    rows: list[list[Text | str]] = []
    labels = {label.number: label for label in look.labels}
    scored = is_scored(look.snapshot.spec)
    for result in look.variants:
        label = labels.get(result.variant)
        cells: list[Text | str] = [
            Text(excerpt(label.target, LABEL_SHOWN) if label else f"variant {result.variant}"),
            Text(excerpt(label.prompt, LABEL_SHOWN) if label else "-"),
            f"{result.done:,}/{result.total:,}",
            str(variant_pass_rate(result, is_scored=scored)),
            "-" if result.score is None else f"{result.score:.3f}",
            f"{result.dead_letters:,}",
        ]
        rows.append(cells)
    return fitted(columns, rows, width)


def _next_steps(look: Look) -> Iterator[str]:
    batch_id = printable(look.snapshot.batch_id)
    if look.snapshot.dead_letters and not look.report:
        yield f"Dead letters, and how to retry them: {batch_command('dlq', batch_id)}"
    if is_over(look.snapshot) and look.snapshot.done:
        yield f"All results: {batch_command('export', batch_id, '-o', 'results.jsonl')}"
    elif not is_over(look.snapshot) and not look.is_abandoned:
        yield f"To see it go on: {batch_command('status', batch_id, '--watch')}"
