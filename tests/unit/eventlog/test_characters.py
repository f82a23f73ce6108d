"""Characters that UTF-8 cannot encode are replaced, and nothing else is."""

import pytest

from eventlog.characters import without_half_characters


@pytest.mark.parametrize("text", ["", "plain", "Größe", "\U0001f600", "\x00\x7f"])
def test_a_text_that_can_be_encoded_is_unchanged(text):
    """Control characters and whole surrogate pairs stay."""
    assert without_half_characters(text) == text


@pytest.mark.parametrize("half", ["\ud83d", "\ude00"], ids=["first", "second"])  # noqa: PT014 - two halves
def test_half_a_character_becomes_a_question_mark(half):
    """The rest of the text stays, and the result can be encoded."""
    assert without_half_characters(f"a{half}é") == "a?é"
