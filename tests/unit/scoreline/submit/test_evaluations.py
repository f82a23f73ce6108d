"""Evaluations of a plan: their order, which cases are chosen, and what every case must have."""

from typing import Any

import pytest

from scoreline.submit.datasets.errors import RowError
from scoreline.submit.evaluations import prepared
from scoreline.submit.spec.builder import make_plan
from tests.unit.scoreline.submit.submission_harness import plan_of, refused, submitted

TWO = [{"id": "a", "input": "x", "expected": "1"}, {"id": "b", "input": "y", "expected": "2"}]


async def test_evaluations_come_case_by_case_then_variant_then_repetition(tmp_path):
    """The position in the submission follows from case, prompt, target and repetition, in this order."""
    targets = [{"type": "simulated", "label": label} for label in ("one", "two")]
    plan = plan_of(tmp_path, TWO, prompt=["{input}", "- {input}"], target=targets, repetitions=2)
    made = await submitted(plan)
    assert [(each.case.id, each.variant, each.repetition) for each in made] == [
        (case, variant, repetition) for case in "ab" for variant in range(4) for repetition in (1, 2)
    ]
    assert all(each.answer is None and each.serial is None and each.cache_key is None for each in made)


async def test_tags_choose_before_the_limit(tmp_path):
    """The limit counts the cases left after filtering; one matching tag is enough."""
    tags = [["x"], ["y"], [], ["x", "y"], ["z"], ["y"]]
    rows = [{"id": str(n), "input": "i", "tags": tagged} for n, tagged in enumerate(tags)]
    plan = plan_of(tmp_path, rows, tag=["y", "z"], limit=3)
    assert [each.case.id for each in await submitted(plan)] == ["1", "3", "4"]
    assert "no case has the tag 'q'" in await refused(plan_of(tmp_path, rows, tag=["q"]))


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


async def test_made_up_cases_are_the_same_every_time(tmp_path):
    """A simulated batch without a dataset has the requested number of cases."""
    plan = make_plan(None, {"mode": "simulated", "limit": 3}, folder=tmp_path)
    made = await submitted(plan)
    assert [each.case.id for each in made] == ["1", "2", "3"]
    assert made == await submitted(plan)
    assert all(each.case.expected for each in made)


async def test_a_cache_key_covers_all_that_decides_the_answer(tmp_path):
    """The same question has the same key in any batch; prompt, target, case and repetition change it."""

    async def keys(row: dict[str, Any], **flags: Any) -> list[Any]:
        plan = plan_of(tmp_path, [row], cache=True, **flags)
        return [each.cache_key for each in await submitted(plan)]

    row = {"id": "a", "input": "x"}
    first, second = await keys(row, repetitions=2)
    assert len(first) == 64
    assert await keys(row, name="other") == [first]
    others = [
        *await keys(row, prompt=["- {input}"]),
        *await keys(row, target=[{"type": "simulated", "seed": 1}]),
        *await keys({**row, "level": 2}),
    ]
    assert len({first, second, *others}) == 5
