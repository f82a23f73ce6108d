"""Settings of an executor: its name is part of every claim."""

import pytest

from executor.settings import MAX_NAME, ExecutorSettings, is_name


@pytest.mark.parametrize(
    ("name", "is_valid"),
    [("w", True), ("é" * MAX_NAME, True), ("", False), ("w" * (MAX_NAME + 1), False), ("a\nb", False)],
)
def test_a_name_is_short_and_printable(name, is_valid):
    """Characters are counted, not bytes."""
    assert is_name(name) is is_valid


def test_an_executor_with_an_invalid_name_is_refused():
    """The error quotes the name, with its control characters escaped, and states the rule."""
    with pytest.raises(
        ValueError, match=r"invalid executor name 'a\\tb': .* 1 to 150 printable characters"
    ):
        ExecutorSettings("a\tb", slots=1)
