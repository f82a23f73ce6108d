"""The results of a batch as text: pass rates with intervals, first failures, dead letters in red."""

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from projections.queries.batches import BatchSnapshot
from projections.queries.results import DeadLetterGroup
from scoreline.formatting import counted, excerpt, printable
from scoreline.invocation import batch_command, typed
from scoreline.reports.export_record import Record, as_text
from scoreline.reports.faults import why_ended
from scoreline.reports.report import Report, ReportRow
from scoreline.reports.table import Column, fits, fitted

LABEL_SHOWN = 40
VALUE_SHOWN = 300
GROUPS_SHOWN = 5
FIGURES = (
    Column("evaluator"),
    *(Column(name, is_figure=True) for name in ("passed", "rate", "95 % interval", "score", "no verdict")),
)
RED, BOLD_RED, GREEN = "red", "bold red", "green"


def report_lines(snapshot: BatchSnapshot, report: Report, width: int) -> Iterator[RenderableType]:
    """Return the results of a batch: pass rates, first failures, dead letters."""
    if any(row.rate.is_scored for row in report.rows):
        yield Text()
        yield from results(report, width)
    yield from _failed(snapshot, report)
    yield from _dead_letters(snapshot, report)


def results(report: Report, width: int) -> Iterator[RenderableType]:
    """Return the pass rate of every variant and evaluator, with its 95 % Wilson interval.

    Where one table is too wide, each variant has a table of its own under its name.
    """
    prompted = len({row.label.prompt for row in report.rows if row.label}) > 1
    names = [Column("target"), *([Column("prompt")] if prompted else [])]
    rows = [[*_names(row, prompted=prompted), *_figures(row)] for row in report.rows]
    if fits([*names, *FIGURES], rows, width):
        yield fitted([*names, *FIGURES], rows, width)
        return
    for _, group in groupby(report.rows, key=attrgetter("variant")):
        of_one = list(group)
        yield Text(" · ".join(name.plain for name in _names(of_one[0], prompted=prompted)))
        yield fitted(FIGURES, [_figures(row) for row in of_one], width)


def _names(row: ReportRow, *, prompted: bool) -> list[Text]:
    target = excerpt(row.label.target, LABEL_SHOWN) if row.label else f"variant {row.variant}"
    prompt = [Text(excerpt(row.label.prompt if row.label else "-", LABEL_SHOWN))] if prompted else []
    return [Text(target), *prompt]


def _figures(row: ReportRow) -> list[Text | str]:
    interval = row.rate.interval
    shown = row.rate.is_scored and row.decides
    return [
        Text(excerpt(row.evaluator, LABEL_SHOWN) or ("all" if row.rate.is_scored else "-")),
        f"{row.rate.passed:,} of {row.rate.ended:,}" if shown else "-",
        Text(str(row.rate), style=_colour(row.rate.value)) if row.decides else "-",
        f"{interval.low:.1%} … {interval.high:.1%}" if shown and interval else "-",
        "-" if row.score is None else f"{row.score:.3f}",
        Text(f"{row.no_verdict:,}", style=RED if row.no_verdict else ""),
    ]


def _colour(rate: float | None) -> str:
    match rate:
        case None:
            return ""
        case 0.0:
            return BOLD_RED
        case 1.0:
            return GREEN
        case _:
            return ""


def _failed(snapshot: BatchSnapshot, report: Report) -> Iterator[RenderableType]:
    """Return the first answers that did not pass: input, expected, answer and reason."""
    wrong = snapshot.progress.completed - snapshot.progress.passed
    if not report.failed:
        return
    first = f", the first {len(report.failed)}" if wrong > len(report.failed) else ""
    yield Text()
    yield Text(f"{counted(wrong, 'answer')} did not pass{first}:", style="bold")
    for record in report.failed:
        yield from _failure(record)
    batch_id = printable(snapshot.batch_id)
    yield Text(
        f"All that did not pass: {batch_command('export', batch_id, '--failed', '-o', 'failed.jsonl')}"
    )
    one = printable(report.failed[0].evaluation_id)
    yield Text(f"Prompt and answer of one: {typed('replay', one, '--full')}")


def _failure(record: Record) -> Iterator[RenderableType]:
    again = f" #{record.repetition}" if record.repetition > 1 else ""
    target = f"  {excerpt(record.target, LABEL_SHOWN)}" if record.target else ""
    yield Text(
        f"  {printable(record.evaluation_id)}  case {excerpt(record.case_id, LABEL_SHOWN)}{again}{target}"
    )
    values = {
        "input": as_text(record.input),
        "expected": as_text(record.expected),
        "answer": record.output,
        "reason": record.reason,
    }
    for name, value in values.items():
        if value is not None:
            yield Padding(Text(f"{name:9}{excerpt(value, VALUE_SHOWN)}"), (0, 0, 0, 4), expand=False)


def _dead_letters(snapshot: BatchSnapshot, report: Report) -> Iterator[RenderableType]:
    if not report.dead_letters:
        return
    yield Text()
    yield Text(
        f"{counted(snapshot.progress.dead_letters, 'dead letter')}, not passed, by reason:", style=BOLD_RED
    )
    for group in report.dead_letters[:GROUPS_SHOWN]:
        yield Padding(Text(_group_words(group), style=RED), (0, 0, 0, 2), expand=False)
    more = len(report.dead_letters) - GROUPS_SHOWN
    if more > 0:
        yield Text(f"  and {counted(more, 'more reason')}", style=RED)
    batch_id = printable(snapshot.batch_id)
    yield Text(f"All of them: {batch_command('dlq', batch_id)}")
    yield Text(f"To retry them: {batch_command('retry', batch_id)}")


def _group_words(group: DeadLetterGroup) -> str:
    fault = why_ended(group.status, group.error, group.closing)
    reason = excerpt(str(fault).partition("\n")[0] if fault else group.kind, VALUE_SHOWN)
    return f"{group.count_:,} x {reason} (e.g. {printable(group.example)})"
