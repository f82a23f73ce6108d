"""Options of targets and evaluators: error messages for users."""

import pytest
from pydantic import Field, field_validator, model_validator

from executor.options import OptionModel, nearest, read_options
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


class SomeOptions(OptionModel):
    """Options with every kind of error."""

    size: int = Field(ge=1)
    text: str = ""

    @field_validator("text")
    @classmethod
    def _is_polite(cls, text: str) -> str:
        if text == "no":
            raise ValueError("it must be polite")
        return text

    @model_validator(mode="after")
    def _is_short(self) -> "SomeOptions":
        if len(self.text) > self.size:
            raise ValueError("the text is too long")
        return self


class NoOptions(OptionModel):
    """No option at all."""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "the thing needs the option 'size'"),
        ({"size": 0}, "the thing: size: Input should be greater than or equal to 1"),
        ({"size": 9, "text": "no"}, "the thing: text: it must be polite"),
        ({"size": 1, "text": "yes"}, "the thing: the text is too long"),
        ({"size": 1, "zzzz": 1}, "the thing has no option 'zzzz'; known: size, text"),
    ],
)
def test_each_error_names_the_thing_and_the_option(options, message):
    """An error of all options together names only the thing."""
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - compared below
        read_options(SomeOptions, options, of="the thing")
    assert str(refused.value) == message


def test_a_type_without_options_knows_none():
    """The message states it instead of ending in a colon."""
    with pytest.raises(ValueError, match="the thing has no option 'size'; known: none"):
        read_options(NoOptions, {"size": 1}, of="the thing")


def test_a_name_that_resembles_none_has_no_nearest():
    """A suggestion that is far off would mislead."""
    assert nearest("tex", ("size", "text")) == "text"
    assert nearest("zzzz", ("size", "text")) is None
