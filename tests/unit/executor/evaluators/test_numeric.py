"""Numbers in answers."""

import pytest

from executor.contract import Permanent
from executor.evaluators.numeric import number_in
from tests.unit.executor.evaluators.scored import judge


async def test_an_expected_value_that_is_no_number_is_a_fault_not_a_score():
    """No answer could match it."""
    with pytest.raises(Permanent, match="the expected value is not a number: 'one'") as caught:
        await judge("numeric", "1", "one")
    assert caught.value.kind == "bad_expected"


@pytest.mark.parametrize(
    "text", ["", ".", "-", "$", "%", ",", "e5", "1e99999", "--1", "- -1", "nan", "inf", "9" * 500]
)
def test_a_text_that_is_no_number_gives_none(text):
    """Signs without digits, words, and texts too long for a number."""
    assert number_in(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [("-$5", "-5"), ("$-5", "-5"), ("\u22125", "-5"), (".5", "0.5"), ("1e3", "1000"), ("€ 7", "7")],
)
def test_numbers_are_read_as_people_write_them(text, value):
    """A sign before or behind the currency, a minus as typesetters have it."""
    assert number_in(text) == pytest.approx(number_in(value))
