"""The comparison of two histories as text and as JSON."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import timedelta

from rich.console import Console
from rich.text import Text

from scoreline.formatting import clipped, counted, excerpt, money, printable, span
from scoreline.reports.replay import event_text
from scoreline.reports.replay.attempt_result import AttemptResult
from scoreline.reports.replay.comparison import AlignedEntries, HistoryComparison
from scoreline.reports.replay.document import Json, document, line_json
from scoreline.reports.replay.grid import grid
from scoreline.reports.replay.timeline_entry import EntryDisposition, TimelineEntry

LINE_WIDTH = 200
"""Characters of a line of output."""


def show_comparison(console: Console, comparison: HistoryComparison) -> None:
    """Print two sides next to each other with differences marked, then their results."""
    left, right = printable(comparison.left.label), printable(comparison.right.label)
    each = max(24, (console.width - 34) // 2)
    rows = [_row(pair, each, whole=comparison.left.attempt is None) for pair in comparison.pairs]
    console.print(Text(f"{left} ↔ {right}", style="bold"), soft_wrap=True)
    headings = ["", "seq", excerpt(left, each), excerpt(right, each), "differs in"]
    lines = [*grid(headings, rows, console.width), Text(), *_ends(comparison, left, right, console.width)]
    for line in (*lines, Text(), *_output(comparison)):
        console.print(line, soft_wrap=True)


def _row(pair: AlignedEntries, width: int, *, whole: bool) -> list[Text]:
    attempt, sequence = pair.key
    style = "yellow" if pair.differs else ""
    return [
        Text("≠" if pair.differs else "", style=style),
        Text(f"{attempt}/{sequence}" if whole else str(sequence)),
        _cell(pair.left, width),
        _cell(pair.right, width),
        Text(", ".join(pair.differs), style=style),
    ]


def _cell(line: TimelineEntry | None, width: int) -> Text:
    if line is None:
        return Text("-", style="dim")
    since = "" if line.since is None else f" +{span(line.since)}"
    disposition = "" if line.disposition is EntryDisposition.APPLIED else f" [{event_text.verdict(line)}]"
    cell = Text(f"{line.event.type}{since}{disposition}  {event_text.describe(line.event)}".rstrip())
    cell.truncate(width, overflow="ellipsis")
    return cell


def _ends(comparison: HistoryComparison, left: str, right: str, width: int) -> Iterator[Text]:
    one, other = comparison.results
    rows = [_end(*measure) for measure in measures(one, other)]
    return grid(["", "at the end", excerpt(left, 40), excerpt(right, 40), "change"], rows, width)


def _end(name: str, one: str, other: str, change: str) -> list[Text]:
    style = "" if one == other else "yellow"
    mark = Text("" if one == other else "≠", style=style)
    return [mark, Text(name), Text(excerpt(one, 40)), Text(excerpt(other, 40)), Text(change, style=style)]


def measures(one: AttemptResult, other: AttemptResult) -> Iterator[tuple[str, str, str, str]]:
    """Return the rows of compared results: name, both values, change."""
    yield "state", one.state, other.state, ""
    yield "verdict", one.verdict or "-", other.verdict or "-", ""
    yield "score", _number(one.score), _number(other.score), _change(one.score, other.score)
    for evaluator in dict.fromkeys([*one.scores, *other.scores]):
        before, after = one.scores.get(evaluator), other.scores.get(evaluator)
        yield f"  {excerpt(evaluator, 30)}", _number(before), _number(after), _change(before, after)
    yield "tokens", str(one.tokens), str(other.tokens), _change(one.tokens, other.tokens)
    cost = _change(one.cost_usd, other.cost_usd)
    yield "cost", money(one.cost_usd), money(other.cost_usd), cost
    yield "latency", _ms(one.latency_ms), _ms(other.latency_ms), ""
    yield "took", _span(one.took), _span(other.took), ""
    yield "exit code", _number(one.exit_code), _number(other.exit_code), ""
    yield "error", one.error or "-", other.error or "-", ""
    yield "gap bridged", "yes" if one.bridged else "no", "yes" if other.bridged else "no", ""


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"


def _change(before: float | None, after: float | None) -> str:
    return f"{after - before:+g}" if before is not None and after is not None and before != after else ""


def _ms(milliseconds: float) -> str:
    return span(timedelta(milliseconds=milliseconds))


def _span(time: timedelta | None) -> str:
    return "-" if time is None else span(time)


def _output(comparison: HistoryComparison) -> Iterator[Text]:
    one, other = (result.output for result in comparison.results)
    if one is None and other is None:
        yield Text("No output on record on either side.")
    elif one == other:
        yield Text(f"The outputs are the same ({counted(len(one or ''), 'character')}).")
    for line in comparison.output:
        style = {"+": "green", "-": "red"}.get(line[:1], "dim")
        yield Text(clipped(line, LINE_WIDTH), style=style)


def comparison_document(comparison: HistoryComparison) -> Json:
    """Return both histories and their differences as JSON."""
    one, other = comparison.results
    return {
        "left": document(comparison.left.history, attempt=comparison.left.attempt),
        "right": document(comparison.right.history, attempt=comparison.right.attempt),
        "pairs": [
            {
                "attempt": pair.key[0] or None,
                "sequence": pair.key[1],
                "left": pair.left and line_json(pair.left),
                "right": pair.right and line_json(pair.right),
                "differs": list(pair.differs),
            }
            for pair in comparison.pairs
        ],
        "results": {"left": _result(one), "right": _result(other)},
        "output_diff": list(comparison.output),
    }


def _result(result: AttemptResult) -> Json:
    return {**asdict(result), "took": result.took and result.took.total_seconds()}
