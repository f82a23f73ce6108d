"""The record of an evaluation in an export."""

import json

import pytest

from projections.queries.export import ExportRow
from scoreline.reports.export_record import make_record
from tests.builders import START


def test_record_of_an_unknown_variant_has_no_label() -> None:
    """A record of an external batch has no target, prompt or scores."""
    row = ExportRow(
        "e", "c", 3, 1, "queued", None, None, None, None, None, None, None, None, 1, None, None, None, None,
        bridged=False, ended_at=None,
    )  # fmt: skip
    made = make_record(row, [])
    assert (made.target, made.prompt, made.scores, made.error, made.passed) == (
        None,
        None,
        (),
        None,
        None,
    )


@pytest.mark.parametrize(
    ("judgements", "reason"),
    [
        ([("a", False, "wrong"), ("b", True, "fine"), ("c", None, "long")], "a: wrong"),
        ([("a", False, ""), ("b", True, "fine")], "b: fine"),
        ([("a", True, "fine"), ("b", None, "long")], "a: fine; b: long"),
        ([("a", False, "wrong"), ("b", False, "worse")], "a: wrong; b: worse"),
        ([], ""),
    ],
)
def test_reason_is_that_of_the_evaluators_that_failed_the_answer(
    judgements: list[tuple[str, bool | None, str]], reason: str
) -> None:
    """Reasons of other evaluators are used only where none that failed the answer gave one."""
    scores = json.dumps(
        [
            {"evaluator": name, "score": 0.5, "passed": passed, "reason": why}
            for name, passed, why in judgements
        ]
    )
    row = ExportRow(
        "e-1", "c", 0, 1, "completed", "failed", 0.5, scores, "x", None, None, None,
        None, 1, 7, None, 1.5, 0, bridged=False, ended_at=START,
    )  # fmt: skip
    assert make_record(row, []).reason == reason
