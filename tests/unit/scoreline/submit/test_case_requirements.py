"""Fields that every case must have."""

from typing import Any

import pytest

from scoreline.submit.datasets.errors import RowError
from scoreline.submit.evaluations import prepared
from tests.unit.scoreline.submit.submission_harness import TWO, plan_of, refused


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"prompt": ["{input} in {langage}"]}, "no column 'langage'"),
        ({"evaluator": ["exact"]}, "'exact' needs one"),
        ({"evaluator": [{"type": "code", "program": "{output}{tests}"}]}, "Needed by the evaluator 'code'"),
    ],
)
async def test_a_row_without_a_required_field_is_named(tmp_path, flags, message):
    """Placeholders and expected values are checked in each row before anything runs."""
    rows: list[dict[str, Any]] = [
        {"input": "x", "language": "C", "langage": "C", "expected": 1, "tests": ""},
        {"input": "y", "language": "C"},
    ]
    complaint = await refused(plan_of(tmp_path, rows, **flags))
    assert message in complaint
    assert "cases.jsonl, line 2: " in complaint


async def test_a_bad_row_at_the_end_comes_after_good_ones(tmp_path):
    """Rows are checked while they stream; the submitting transaction rolls back on an error."""
    plan = plan_of(tmp_path, [*TWO, {"id": "a"}])
    async with prepared(plan) as submission:
        making = submission.evaluations()
        assert [(await anext(making)).case.id, (await anext(making)).case.id] == ["a", "b"]
        with pytest.raises(RowError, match="line 3: the id 'a' was there before"):
            await anext(making)
