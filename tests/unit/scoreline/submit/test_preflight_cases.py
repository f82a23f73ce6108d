"""Preflight of data: prompts that ask every case the same, and expected values no evaluator can use."""

from pathlib import Path

import pytest

from scoreline.submit.preflight_cases import check_cases, check_prompts
from scoreline.submit.preflight_finding import PreflightFinding
from scoreline.submit.spec.builder import make_plan


async def found(folder: Path, rows: list[str], **keys: object) -> list[PreflightFinding]:
    """Check the cases of a file with these rows."""
    (folder / "cases.jsonl").write_text("".join(f"{row}\n" for row in rows))
    flags = {"dataset": "cases.jsonl", "targets": ["simulated"], "evaluators": ["numeric"], **keys}
    return await check_cases(make_plan(None, flags, folder=folder))


NUMBER, WORD, NOTHING = (f'{{"input": "a"{rest}}}' for rest in (', "expected": 1', ', "expected": "b"', ""))


async def test_values_that_no_case_can_use_are_fatal(tmp_path: Path):
    """The finding has file, line and evaluator."""
    [finding] = await found(tmp_path, [WORD, WORD])
    assert (finding.is_fatal, finding.is_avoidable) == (True, True)
    assert finding.text.startswith(
        f"{tmp_path / 'cases.jsonl'}, line 1: the evaluator 'numeric' can use the expected value of none "
        "of the first 2 cases: "
    )


async def test_values_that_some_cases_can_use_are_a_warning(tmp_path: Path):
    """The first unusable case is named."""
    [finding] = await found(tmp_path, [NUMBER, WORD])
    assert not finding.is_fatal
    assert (
        "line 2: the evaluator 'numeric' can use the expected value of only 1 of the first 2"
        in finding.text
    )


async def test_cases_that_submission_refuses_are_not_avoidable(tmp_path: Path):
    """A missing expected value, and a file that can't be read, are refused without preflight as well."""
    [missing] = await found(tmp_path, [NOTHING])
    [unreadable] = await found(tmp_path, ["{"])
    assert not missing.is_avoidable
    assert not unreadable.is_avoidable


async def test_only_the_first_cases_that_would_be_submitted_are_read(tmp_path: Path):
    """A limit below twenty is kept to; later rows are for submission to check."""
    assert await found(tmp_path, [NUMBER, WORD], limit=1) == []
    assert await found(tmp_path, [NUMBER] * 20 + [WORD]) == []
    assert len(await found(tmp_path, [NUMBER] * 19 + [WORD])) == 1


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        ("{input}", None),
        ("Answer {{ input }}", "has {{input}}, which is not filled in: write {input}"),
        ("Answer", "has no placeholder, so every case is asked the same: write {input}"),
    ],
)
def test_a_prompt_without_its_input_is_a_warning(tmp_path: Path, prompt: str, text: str | None):
    """Double braces are what other tools write."""
    plan = make_plan(None, {"mode": "simulated", "prompts": [prompt]}, folder=tmp_path)
    findings = list(check_prompts(plan))
    assert [finding.text.endswith(text or "") for finding in findings] == [True] * (text is not None)
    assert not any(finding.is_fatal for finding in findings)


def test_prompts_of_recorded_answers_are_not_checked(tmp_path: Path):
    """No prompt is sent."""
    flags = {"dataset": "a.jsonl", "targets": ["recorded:b.jsonl"], "prompts": ["Answer"]}
    assert list(check_prompts(make_plan(None, flags, folder=tmp_path))) == []
