"""The rows of a report: one for each variant, and one for each evaluator of the spec."""

from domain.batch_spec import BatchSpec, EvaluatorSpec, TargetSpec, pack
from projections.queries.batches import VariantResult
from projections.queries.results import EvaluatorResult
from scoreline.reports.report import ReportRow, report_rows

DEAD = VariantResult(0, total=3, ended=3, completed=0, passed=0, dead_letters=3, score=None)
EXACT = EvaluatorResult(0, "exact", scored=3, passed=2, decided=3, score=2 / 3)
LENGTH = EvaluatorResult(0, "length", scored=2, passed=0, decided=0, score=0.5)


def spec_with(*names: str) -> str:
    evaluators = tuple(EvaluatorSpec("exact", name) for name in names)
    return pack(BatchSpec("b", (TargetSpec("simulated", "t"),), evaluators=evaluators)).decode()


def figures(rows: list[ReportRow]) -> list[tuple[str, int, int, bool]]:
    return [(row.evaluator, row.rate.passed, row.no_verdict, row.decides) for row in rows]


def test_evaluators_of_the_spec_have_rows_in_its_order() -> None:
    """An evaluator without any score has a row, with no passes and every verdict missing."""
    rows = list(report_rows([DEAD], [EXACT], (), spec_with("never", "exact")))
    assert figures(rows) == [("", 0, 3, True), ("never", 0, 3, True), ("exact", 2, 0, True)]


def test_an_evaluator_that_only_scores_has_no_pass_rate() -> None:
    """An evaluator that never passes or fails an answer is marked as not deciding."""
    rows = list(report_rows([DEAD], [EXACT, LENGTH], (), spec_with("exact", "length")))
    assert figures(rows)[2] == ("length", 0, 1, False)


def test_a_single_evaluator_shares_the_row_of_its_variant() -> None:
    """The row of the variant has the name of its only evaluator, even if that never scored."""
    assert figures(list(report_rows([DEAD], [], (), spec_with("exact")))) == [("exact", 0, 3, True)]


def test_evaluators_of_an_external_batch_are_those_that_scored() -> None:
    """Without a spec, the rows are those of the evaluators in the scores."""
    rows = list(report_rows([DEAD], [EXACT, LENGTH], (), None))
    assert [row.evaluator for row in rows] == ["", "exact", "length"]
