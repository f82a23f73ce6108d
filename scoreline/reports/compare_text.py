"""The comparison of two batches as text and as JSON."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from projections.queries.batches import BatchSnapshot
from scoreline.formatting import counted, excerpt, printable
from scoreline.invocation import batch_command, typed
from scoreline.reports.compare_fold import BatchComparison, Flip, Side
from scoreline.reports.compare_statistics import Interval, mcnemar, rate_difference
from scoreline.reports.compare_variants import Pairing
from scoreline.reports.export_record import Record, as_text
from scoreline.reports.table import Column, fitted

LABEL_SHOWN = 60
VALUE_SHOWN = 300
CHANCE = 0.05
"""The significance level of the p-value."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Two batches, the pairing of their variants, and the comparison."""

    left: BatchSnapshot
    right: BatchSnapshot
    pairing: Pairing
    comparison: BatchComparison
    texts: Mapping[str, Record] = field(default_factory=dict)
    """Inputs and outputs of the listed flips, by evaluation id."""

    @property
    def p_value(self) -> float:
        """The p-value of the exact McNemar test of the flips."""
        return mcnemar(self.comparison.newly_failing, self.comparison.newly_passing)


def show(console: Console, compared: Compared) -> None:
    """Print the comparison."""
    for line in _screen(compared, console.width):
        # Sentences wrap at words; ids and commands to type stay whole.
        console.print(
            line, soft_wrap=isinstance(line, Text) and ("→" in line.plain or "--all" in line.plain)
        )


def _screen(compared: Compared, width: int) -> Iterator[RenderableType]:
    yield Text(f"{_title(compared.left)} → {_title(compared.right)}")
    yield from map(Text, _scope(compared))
    yield _sides(compared, width)
    yield from map(Text, _changes(compared))
    yield from _flips(
        "newly failing", compared, compared.comparison.failing, compared.comparison.newly_failing
    )
    yield from _flips(
        "newly passing", compared, compared.comparison.passing, compared.comparison.newly_passing
    )


def _title(snapshot: BatchSnapshot) -> str:
    name = f" “{printable(snapshot.name)}”" if snapshot.name else ""
    return f"{printable(snapshot.batch_id)}{name}"


def _scope(compared: Compared) -> Iterator[str]:
    """Return lines on which variants and how many pairs were compared."""
    pairing, comparison = compared.pairing, compared.comparison
    if len(pairing.pairs) > 1 or pairing.by != "target and prompt":
        named = "; ".join(
            f"{excerpt(str(ours), LABEL_SHOWN)} with {excerpt(str(theirs), LABEL_SHOWN)}"
            for ours, theirs in pairing.pairs
        )
        yield f"variants paired by {pairing.by}: {named}"
    for side, over in (("first", pairing.left_over), ("second", pairing.right_over)):
        if over:
            left_out = "; ".join(excerpt(str(label), LABEL_SHOWN) for label in over)
            yield f"only in the {side}, not compared: {left_out}"
    yield ", ".join(_pair_counts(comparison))
    if comparison.lost:
        command = batch_command("dlq", printable(compared.right.batch_id))
        yield f"{comparison.lost:,} had passed and have no verdict now: {command}"


def _pair_counts(comparison: BatchComparison) -> Iterator[str]:
    yield f"{counted(comparison.judged, 'pair')} compared"
    if comparison.unjudged:
        yield f"{counted(comparison.unjudged, 'pair')} not scored"
    if comparison.left.only_here:
        yield f"{counted(comparison.left.only_here, 'evaluation')} only in the first"
    if comparison.right.only_here:
        yield f"{comparison.right.only_here:,} only in the second"


def _sides(compared: Compared, width: int) -> RenderableType:
    sides = ((compared.left, compared.comparison.left), (compared.right, compared.comparison.right))
    rows: list[list[Text | str]] = [
        [
            Text(printable(snapshot.batch_id)),
            f"{side.ended:,}",
            f"{side.passed:,}",
            str(side.pass_rate),
            _range(side.pass_rate.interval, ".1%"),
            f"{side.scores.mean:.3f}" if side.scores.count else "-",
            f"{side.dead_letters:,}",
        ]
        for snapshot, side in sides
    ]
    figures = ("ended", "passed", "rate", "95 % interval", "mean score", "dead letters")
    return fitted([Column("batch"), *(Column(name, is_figure=True) for name in figures)], rows, width)


def _changes(compared: Compared) -> Iterator[str]:
    comparison = compared.comparison
    difference = rate_difference(comparison.newly_passing, comparison.newly_failing, comparison.judged)
    if difference:
        by, interval = difference
        within = f"{interval.low * 100:+.1f} … {interval.high * 100:+.1f}"
        yield f"pass rate of the pairs: {by * 100:+.1f} points (95 % interval {within})"
        yield (
            f"{comparison.newly_failing:,} newly failing, {comparison.newly_passing:,} newly passing: "
            f"{_significance(compared)}"
        )
    scores = comparison.score_differences
    if scores.count:
        within = f" (95 % interval {_range(scores.interval, '+.4f')})" if scores.interval else ""
        yield f"mean score of {counted(scores.count, 'pair')}: {scores.mean:+.4f}{within}"


def _significance(compared: Compared) -> str:
    flips = compared.comparison.newly_failing + compared.comparison.newly_passing
    if not flips:
        return "no verdict has changed"
    meaning = "more than chance" if compared.p_value < CHANCE else "may well be chance"
    p = "p < 0.0001" if compared.p_value < 0.0001 else f"p = {compared.p_value:.4f}"
    return f"{meaning} ({p}, exact McNemar test)"


def _flips(title: str, compared: Compared, flips: list[Flip], count: int) -> Iterator[RenderableType]:
    if not count:
        return
    shown = f", the first {len(flips):,}" if len(flips) < count else ""
    yield Text(f"\n{title}: {count:,}{shown}", style="bold")
    for flip in flips:
        yield Text(f"  {_case(compared, flip)}  {printable(flip.left_id)} → {printable(flip.right_id)}")
        yield from _change(compared, flip)
    if len(flips) < count:
        both = printable(compared.left.batch_id), printable(compared.right.batch_id)
        yield Text(f"  All of them: {typed('batch', 'compare', *both, '--all')}")


def _change(compared: Compared, flip: Flip) -> Iterator[RenderableType]:
    """Return the input, both answers, and the reason of the one that did not pass."""
    before, after = compared.texts.get(flip.left_id), compared.texts.get(flip.right_id)
    if before is None or after is None:
        return
    values = {
        "input": as_text(before.input),
        "expected": as_text(before.expected),
        "before": _answer(before),
        "after": _answer(after),
    }
    for name, value in values.items():
        if value is not None:
            yield Padding(Text(f"{name:9}{excerpt(value, VALUE_SHOWN)}"), (0, 0, 0, 4), expand=False)


def _answer(record: Record) -> str:
    """Return an answer with the reason it did not pass, or the error where there is none."""
    if record.error:
        return str(record.error)
    reason = f"  ({record.reason})" if record.reason and not record.passed else ""
    return f"{record.output or ''}{reason}"


def _case(compared: Compared, flip: Flip) -> str:
    variant = ""
    if len(compared.pairing.pairs) > 1:
        variant = f" [{excerpt(str(compared.pairing.pairs[flip.place - 1][1]), LABEL_SHOWN)}]"
    again = f" #{flip.repetition}" if flip.repetition > 1 else ""
    return f"{excerpt(flip.case_id, LABEL_SHOWN)}{variant}{again}"


def _range(interval: Interval | None, form: str) -> str:
    return "-" if interval is None else f"{interval.low:{form}} … {interval.high:{form}}"


def compared_document(compared: Compared) -> dict[str, Any]:
    """Return a comparison as JSON."""
    comparison = compared.comparison
    difference = rate_difference(comparison.newly_passing, comparison.newly_failing, comparison.judged)
    scores = comparison.score_differences
    return {
        "left": _side_document(compared.left, comparison.left),
        "right": _side_document(compared.right, comparison.right),
        "paired_by": compared.pairing.by,
        "variants": [
            {"left": ours._asdict(), "right": theirs._asdict()} for ours, theirs in compared.pairing.pairs
        ],
        "not_compared": {
            "left": [label._asdict() for label in compared.pairing.left_over],
            "right": [label._asdict() for label in compared.pairing.right_over],
        },
        "pairs": comparison.judged,
        "unjudged": comparison.unjudged,
        "lost": comparison.lost,
        "both_passed": comparison.both_passed,
        "both_failed": comparison.both_failed,
        "newly_failing": comparison.newly_failing,
        "newly_passing": comparison.newly_passing,
        "pass_rate_difference": difference[0] if difference else None,
        "pass_rate_difference_interval": difference[1] if difference else None,
        "p_value": compared.p_value if comparison.judged else None,
        "score_pairs": scores.count,
        "score_difference": scores.mean if scores.count else None,
        "score_difference_interval": scores.interval,
        "flips": [
            *(_flip_document(compared, flip, "newly_failing") for flip in comparison.failing),
            *(_flip_document(compared, flip, "newly_passing") for flip in comparison.passing),
        ],
    }


def _flip_document(compared: Compared, flip: Flip, change: str) -> dict[str, Any]:
    ours, theirs = compared.pairing.pairs[flip.place - 1]
    fields = {name: value for name, value in flip._asdict().items() if name != "place"}
    before, after = compared.texts.get(flip.left_id), compared.texts.get(flip.right_id)
    texts = {
        "input": before.input if before else None,
        "expected": before.expected if before else None,
        "left_output": before.output if before else None,
        "right_output": after.output if after else None,
        "left_reason": _reason(before),
        "right_reason": _reason(after),
    }
    return {
        "change": change,
        **fields,
        **texts,
        "left_variant": ours.number,
        "right_variant": theirs.number,
    }


def _reason(record: Record | None) -> str | None:
    return None if record is None else str(record.error) if record.error else record.reason


def _side_document(snapshot: BatchSnapshot, side: Side) -> dict[str, Any]:
    return {
        "batch_id": snapshot.batch_id,
        "name": snapshot.name,
        "evaluations": side.total,
        "only_here": side.only_here,
        "ended": side.ended,
        "passed": side.passed,
        "dead_letters": side.dead_letters,
        "pass_rate": side.pass_rate.value,
        "pass_rate_interval": side.pass_rate.interval,
        "score": side.scores.mean if side.scores.count else None,
    }
