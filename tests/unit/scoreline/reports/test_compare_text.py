"""The comparison of two batches as text and as JSON."""

from dataclasses import replace
from io import StringIO

from rich.console import Console

from projections.queries.export import ComparedPair
from scoreline.reports.compare_fold import BatchComparison
from scoreline.reports.compare_text import Compared, compared_document, show
from scoreline.reports.compare_variants import pair_variants
from scoreline.reports.export_record import Record
from scoreline.reports.faults import WhyEnded
from scoreline.reports.labels import VariantLabel
from tests.unit.scoreline.reports.export_rows import record
from tests.unit.scoreline.reports.snapshots import make_snapshot

MODEL = VariantLabel(0, "model", "{input}")
OTHER = VariantLabel(1, "other", "{input}")


def compared(
    *outcomes: tuple[str | None, str | None], limit: int = 10, right: tuple[VariantLabel, ...] = (MODEL,)
) -> Compared:
    """Return the comparison of a batch `a` and a batch `b`, one pair for each two outcomes."""
    comparison = BatchComparison(limit)
    for number, (one, other) in enumerate(outcomes):
        comparison.add(
            ComparedPair(f"case-{number}", 1, 1, f"a.{number}", one, None, f"b.{number}", other, None)
        )
    left = make_snapshot(batch_id="a", name="")
    return Compared(left, make_snapshot(name="new"), pair_variants((MODEL,), right), comparison)


def text(comparison: Compared) -> list[str]:
    """Return the lines with runs of spaces collapsed."""
    console = Console(width=120, file=StringIO(), record=True, highlight=False)
    show(console, comparison)
    return [" ".join(line.split()) for line in console.export_text().splitlines() if line.strip()]


def test_a_few_flips_may_be_chance_and_many_are_not() -> None:
    """The p-value of the exact McNemar test is compared with 5 %."""
    flip, same = ("passed", "failed"), ("passed", "passed")
    assert "3 newly failing, 0 newly passing: may well be chance (p = 0.2500, exact McNemar test)" in text(
        compared(*[flip] * 3, *[same] * 7)
    )
    assert "8 newly failing, 0 newly passing: more than chance (p = 0.0078, exact McNemar test)" in text(
        compared(*[flip] * 8)
    )
    assert any("more than chance (p < 0.0001, " in line for line in text(compared(*[flip] * 20)))
    assert "0 newly failing, 0 newly passing: no verdict has changed" in text(compared(same))


def test_the_scope_counts_pairs_and_lost_verdicts() -> None:
    """A dead letter that had passed is listed with the command for it; a count of one is singular."""
    lines = text(compared(("passed", "passed"), ("passed", "dead_letter"), ("passed", None)))
    assert lines[:3] == [
        "a → b “new”",
        "2 pairs compared, 1 pair not scored",
        "1 had passed and have no verdict now: scoreline batch dlq b",
    ]


def test_variants_left_out_are_named() -> None:
    """The usual pairing of one variant has no line."""
    lines = text(compared(("passed", "passed"), right=(MODEL, OTHER)))
    assert "only in the second, not compared: other · {input}" in lines
    assert not any(line.startswith("variants paired by") for line in lines)
    lines = text(compared(("passed", "passed"), right=(OTHER,)))
    assert "variants paired by order: model · {input} with other · {input}" in lines


def test_a_list_that_was_cut_has_the_command_for_all() -> None:
    """The number in the title is that of all flips."""
    lines = text(compared(*[("passed", "failed")] * 3, limit=1))
    assert "newly failing: 3, the first 1" in lines
    assert lines[-2:] == ["case-0 a.0 → b.0", "All of them: scoreline batch compare a b --all"]
    assert not any(line.startswith("newly passing") for line in lines)


def with_texts(before: Record, after: Record) -> Compared:
    return replace(compared(("passed", "failed")), texts={"a.0": before, "b.0": after})


def test_a_flip_has_both_answers_and_the_reason_of_the_failed_one() -> None:
    """An error stands in the place of an answer."""
    passed, failed = record("4", verdict="passed"), record("5")
    lines = text(with_texts(passed, failed))
    assert lines[-2:] == ["before 4", "after 5 (exact: 5)"]
    dead = replace(failed, error=WhyEnded("permanent", "no model"))
    assert text(with_texts(passed, dead))[-1] == "after permanent: no model"
    [flip] = compared_document(with_texts(passed, dead))["flips"]
    assert (flip["change"], flip["left_output"], flip["right_reason"]) == (
        "newly_failing",
        "4",
        "permanent: no model",
    )


def test_without_a_pair_the_document_has_no_statistics() -> None:
    """Null differs from a difference of 0."""
    empty = compared_document(compared())
    names = ("pass_rate_difference", "pass_rate_difference_interval", "p_value", "score_difference")
    assert [empty[name] for name in names] == [None] * 4
    same = compared_document(compared(("passed", "passed")))
    assert (same["pass_rate_difference"], same["p_value"]) == (0.0, 1.0)
