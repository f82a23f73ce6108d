"""Replies of targets, converted to answers: the pure parts."""

import pytest

from eventlog import payloads as p
from eventlog.redaction import Redactor
from eventlog.secret_sources import secrets_in
from executor.contract import Permanent
from executor.targets.answers import reply, usage_of


@pytest.mark.parametrize(
    ("output", "text"), [("x", "x"), (None, "null"), ([1, "é"], '[1,"é"]'), (True, "true")]
)
def test_what_is_no_text_is_written_out(output, text):
    """Strings stay as they are, all else is JSON."""
    assert reply(output).answer.output == text


def test_a_lone_surrogate_is_replaced():
    """JSON can hold halves of surrogate pairs, and text can't."""
    assert reply("a\ud800b").answer.output == "a?b"


def test_an_answer_that_is_too_long_is_refused_and_never_cut():
    """Half an answer would be scored as if it were a whole one."""
    assert len(reply("é" * p.MAX_TEXT).answer.output) == p.MAX_TEXT
    with pytest.raises(Permanent, match="524,289 characters") as caught:
        reply("x" * (p.MAX_TEXT + 1))
    assert caught.value.kind == "too_large"


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"input_tokens": 1, "output_tokens": 2}, (1, 2)),
        ({"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}, (1, 2)),
        ({"input_tokens": -1, "output_tokens": "many"}, (0, 0)),
        (None, (0, 0)),
        (7, (0, 0)),
    ],
)
def test_tokens_are_counted_by_any_of_their_names(usage, counted):
    """An invalid count is ignored: an answer is not lost for it."""
    assert usage_of(usage) == p.TokenUsage(*counted)


def test_an_invalid_cost_is_an_error_of_the_target():
    """The error names the invalid value."""
    with pytest.raises(Permanent, match="cost_usd of the answer"):
        reply("x", cost_usd=-1)


def test_secrets_are_known_by_their_names_and_hidden_by_their_values():
    """The longest first, and nothing so short that every text would be full of holes."""
    environ = {"MY_API_KEY": "abcde1", "DB_PASSWORD": "abcdefg1", "X_TOKEN": "1a", "HOME": "/home/me"}
    assert secrets_in(environ) == {"abcde1", "abcdefg1", "1a"}
    assert Redactor(secrets_in(environ)).redact("1a abcde1 abcdefg1 /home/me") == "1a *** *** /home/me"
