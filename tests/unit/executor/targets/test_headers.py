"""Headers of requests: what a spec may not hold, and what is filled in."""

import pytest

from executor.contract import Permanent
from executor.targets.headers import check_headers, check_query, fill_in, fill_in_query


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("X Y", "1", "'X Y' is not the name of a header"),
        ("X-Y", "a\r\nb", "the header X-Y has a character that can't be sent"),
        ("X-Api-Key", "abcdef123456", "write $NAME, such as X-Api-Key: $X_API_KEY"),
        ("Authorization", "Bearer x", "such as Authorization: Bearer $SERVICE_TOKEN"),
        ("Authorization", "$SCHEME abcdef123456", "would be stored with the batch"),
    ],
)
def test_headers_that_can_not_be_sent_or_hold_a_secret_are_refused(name, value, error):
    """The message shows how to write it, and never the value."""
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - compared below
        check_headers({name: value})
    assert error in str(refused.value)
    assert "abcdef123456" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Authorization", "Bearer $SERVICE_TOKEN"),
        ("X-Token", ""),
        ("X-Token-Limit", "4096"),
        ("X-Use-Token", "true"),
        ("Idempotency-Key", "abcdef123456"),
        ("X-Team", "abcdef123456"),
    ],
)
def test_a_header_without_a_secret_of_its_own_is_accepted(name, value):
    """Variables, numbers and switches are none, nor are keys that identify a request."""
    check_headers({name: value})


def test_variables_are_filled_in_from_the_environment():
    """In headers as they are, in a query percent-encoded."""
    environ = {"SERVICE_TOKEN": "a/b c"}
    assert fill_in({"X-Token": "Bearer $SERVICE_TOKEN"}, environ) == {"X-Token": "Bearer a/b c"}
    assert fill_in_query("http://h/?k=$SERVICE_TOKEN", environ) == "http://h/?k=a%2Fb%20c"


def test_a_variable_that_is_not_set_is_a_permanent_fault():
    """A retry by the same executor would not help; the fault names the variable."""
    for fill in (
        lambda: fill_in({"X-Token": "$NO_TOKEN"}, {}),
        lambda: fill_in_query("http://h/?k=$NO_TOKEN", {}),
    ):
        with pytest.raises(Permanent, match="NO_TOKEN") as caught:
            fill()
        assert caught.value.kind == "configuration"


def test_a_query_that_holds_a_key_is_refused():
    """The message names the parameter; a variable in its place is accepted."""
    with pytest.raises(ValueError, match=r"the parameter api_key would be .* write api_key=\$NAME"):
        check_query("https://h.test/?api_key=abcdef123456")
    check_query("https://h.test/?api_key=$API_KEY")
