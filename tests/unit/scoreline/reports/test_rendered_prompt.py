"""The prompt of a recorded case."""

from scoreline.reports.rendered_prompt import RecordedCase, rendered_prompt

CASE = RecordedCase("case-1", "Add {first}.", None, {"tone": "brief"})


def test_a_template_is_rendered_from_the_case_and_the_recorded_answers() -> None:
    """An input may name an answer of an earlier evaluation."""
    assert rendered_prompt("{tone}: {input}", CASE, {"first": "4"}) == "brief: Add 4."


def test_a_field_that_is_not_on_record_gives_no_prompt() -> None:
    """A prompt with a hole in it was never sent."""
    assert rendered_prompt("{first}", CASE) is None
    assert rendered_prompt("{first}", CASE, {"first": "4"}) == "4"
