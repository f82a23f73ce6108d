"""Evaluations of a plan: their order, which cases are chosen, and what every case must have."""

from scoreline.submit.spec.builder import make_plan
from tests.unit.scoreline.submit.submission_harness import TWO, plan_of, refused, submitted


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


async def test_made_up_cases_are_the_same_every_time(tmp_path):
    """A simulated batch without a dataset has the requested number of cases."""
    plan = make_plan(None, {"mode": "simulated", "limit": 3}, folder=tmp_path)
    made = await submitted(plan)
    assert [each.case.id for each in made] == ["1", "2", "3"]
    assert made == await submitted(plan)
    assert all(each.case.expected for each in made)
