"""The results of a batch as text."""

import json
from dataclasses import replace
from io import StringIO
from typing import Any

from rich.console import Console

from projections.queries.results import DeadLetterGroup
from scoreline.reports.labels import VariantLabel
from scoreline.reports.pass_rate import PassRate
from scoreline.reports.report import Report, ReportRow
from scoreline.reports.report_text import GROUPS_SHOWN, report_lines
from tests.unit.scoreline.reports.export_rows import record
from tests.unit.scoreline.reports.snapshots import make_snapshot

ROW = ReportRow(VariantLabel(0, "model", "{input}"), 0, "exact", PassRate(3, 4, 4), 0.75, no_verdict=1)
FAULT = json.dumps({"kind": "permanent", "message": "no\nmodel"})
DEAD = DeadLetterGroup("permanent", 1_200, "b.00000001", "failed", FAULT, None)


def text(report: Report, *, width: int = 120, **counters: Any) -> list[str]:
    """Return the lines with runs of spaces collapsed."""
    console = Console(width=width, file=StringIO(), record=True, highlight=False)
    for line in report_lines(make_snapshot(**counters), report, width):
        console.print(line)
    return [" ".join(line.split()) for line in console.export_text().splitlines() if line.strip()]


def test_a_row_has_rate_interval_and_score() -> None:
    """An evaluator that only scores has no rate; one prompt for all has no column."""
    scores_only = replace(ROW, evaluator="length", decides=False, no_verdict=0)
    assert text(Report((ROW, scores_only), (), ())) == [
        "target evaluator passed rate 95 % interval score no verdict",
        "model exact 3 of 4 75.0% 30.1% … 95.4% 0.750 1",
        "model length - - - 0.750 0",
    ]


def test_prompts_have_a_column_where_they_differ() -> None:
    """A variant without a label is named by its number."""
    other = replace(ROW, label=VariantLabel(1, "model", "Q: {input}"), variant=1)
    unknown = replace(ROW, label=None, variant=2)
    lines = text(Report((ROW, other, unknown), (), ()))
    assert lines[0].startswith("target prompt evaluator")
    assert lines[2].startswith("model Q: {input} exact")
    assert lines[3].startswith("variant 2 - exact")


def test_on_a_narrow_terminal_each_variant_has_a_table_of_its_own() -> None:
    """The name of the variant stands above its table."""
    rows = [replace(ROW, label=VariantLabel(n, f"model-{n}" * 4, ""), variant=n) for n in (0, 1)]
    lines = text(Report(tuple(rows), (), ()), width=70)
    assert [line for line in lines if "model" in line] == ["model-0" * 4, "model-1" * 4]
    assert sum(line.startswith("evaluator passed") for line in lines) == 2


def test_a_batch_without_evaluators_has_no_table() -> None:
    """Nothing of it passed or failed."""
    assert text(Report((replace(ROW, rate=PassRate(0, 4, 4, is_scored=False)),), (), ())) == []


def test_the_first_failures_have_input_answer_and_reason() -> None:
    """The commands for all of them, and for one in full, follow."""
    again = replace(record("5"), repetition=2)
    lines = text(Report((), (record("4"), again), ()), completed=90, passed=80)
    assert lines[0] == "10 answers did not pass, the first 2:"
    assert lines[1:6] == ["e-1 case 4 4", "input 4", 'expected ["4"]', "answer 4", "reason exact: 4"]
    assert lines[6] == "e-1 case 5 #2 5"
    assert lines[-2:] == [
        "All that did not pass: scoreline batch export b --failed -o failed.jsonl",
        "Prompt and answer of one: scoreline replay e-1 --full",
    ]
    assert text(Report((), (record("4"),), ()), completed=1)[0] == "1 answer did not pass:"


def test_dead_letters_are_grouped_by_reason() -> None:
    """The first line of a message is shown; further groups are counted."""
    lines = text(Report((), (), (DEAD,) * (GROUPS_SHOWN + 1)), failed=7)
    assert lines[0] == "7 dead letters, not passed, by reason:"
    assert lines[1] == "1,200 x permanent: no (e.g. b.00000001)"
    assert lines[GROUPS_SHOWN + 1 :] == [
        "and 1 more reason",
        "All of them: scoreline batch dlq b",
        "To retry them: scoreline batch retry b",
    ]
