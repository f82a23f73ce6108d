"""The data of the demo."""

from pathlib import Path

from scoreline.local.demo import gsm8k
from scoreline.submit.spec.builder import make_plan
from tests.unit.scoreline.submit.submission_harness import submitted

TARGETS = ["6b_finetuning", "175b_finetuning"]


def test_the_published_figures_are_45_and_65():
    """The published verdicts in the data add up to the figures that the demo promises."""
    found = gsm8k.published(TARGETS)
    assert [sum(found[target].values()) for target in TARGETS] == [45, 65]
    assert all(list(found[target]) == [str(place) for place in range(1, 201)] for target in TARGETS)


async def test_the_demo_data_is_a_whole_batch():
    """The spec makes 400 evaluations, each with its recorded answer; no target is called."""
    evaluations = await submitted(make_plan(gsm8k.SPEC, {}, folder=Path.cwd()))
    assert len(evaluations) == 400
    assert all(each.answer and each.answer.output for each in evaluations)


def test_the_license_lies_beside_the_data():
    """The data is distributed together with its license."""
    text = (gsm8k.FOLDER / "LICENSE").read_text(encoding="utf-8")
    assert text.startswith("MIT License")
    assert "OpenAI" in text
