"""One language: no banned word in code, tests and docs, and one meaning for each public class name."""

from tests.vocabulary import banned_words, places, product_sources, repeated_classes, tracked


def test_words_of_identifiers_are_found() -> None:
    """Snake case, camel case and pairs of words count; parts of other words do not."""
    text = "def is_told(toldRate): # foretold by Kit, in hand; saidar"
    assert list(banned_words(text)) == ["told", "told", "kit", "in hand"]


def test_no_banned_word_is_left() -> None:
    """Each has a standard word: docs/glossary.md."""
    found = list(places(tracked()))
    assert not found, "\n".join(f"{each.path}:{each.line}: {each.word}: {each.text}" for each in found)


def test_each_public_class_name_is_defined_once() -> None:
    """A name that stands for two things is explained twice and found neither time."""
    assert not repeated_classes(product_sources())
