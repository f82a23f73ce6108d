"""Options of targets and evaluators: error messages for users."""

import pytest

from executor.registry import target_type


def test_an_unknown_option_is_answered_with_the_nearest_one():
    """A typo in an option is answered with the closest one."""
    with pytest.raises(ValueError, match="has no option 'passrate'; did you mean 'pass_rate'"):
        target_type("simulated").check({"passrate": 1})


def test_an_unknown_option_is_reported_before_the_missing_one():
    """`functon` is the typo; that `function` is missing follows from it."""
    with pytest.raises(ValueError, match="has no option 'functon'; did you mean 'function'"):
        target_type("python").check({"functon": "app:answer"})


def test_a_wrong_value_is_not_repeated():
    """It may be a secret: the message names place and error only."""
    with pytest.raises(ValueError, match="the simulated target: pass_rate") as caught:
        target_type("simulated").check({"pass_rate": "s3cr3t"})
    assert "s3cr3t" not in str(caught.value)
