"""Redaction removes every form of a secret from a text, and nothing else."""

import base64
import json
import logging
import os
from random import Random
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from coordinator.provider_batches.provider import NoResponse
from eventlog.redaction import KNOWN, MARK, Redactor, redact, redact_head, redact_tail
from scoreline.observability.logs import (
    JsonFormatter,
    TextFormatter,
    holds_no_headers,
    print_redacted,
    warn_of_short_secrets,
)
from tests.redaction.trial import draw, knowing, leak
from tests.unit.eventlog.secrets_of_tests import SECRET


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 2**64))
@example(seed=115996582298706)  # references in a log line, behind a backslash that JSON doubles
@example(seed=12472)
@example(seed=17573)
def test_no_form_of_a_secret_survives(seed: int):
    """With random secrets, encodings, positions and cuts, no part of a secret can be decoded."""
    trial = draw(Random(seed))
    assert leak(trial) is None, trial


@settings(max_examples=100, deadline=None)
@given(text=st.text(max_size=300), random=st.randoms(use_true_random=False))
def test_a_text_without_a_secret_is_unchanged(text: str, random: Random):
    """Whatever escapes the text has, redaction returns the same object."""
    redactor = Redactor(frozenset({f"sk-{random.getrandbits(256):064x}"}))
    assert redactor.redact(text) == text


def test_only_the_secret_is_replaced():
    """The text around a secret is kept, also where the secret is encoded."""
    basic = base64.b64encode(f"user:{SECRET}".encode()).decode()
    text = rf'{{"key": "sk-live\/Q7+abc\u005F0123456789==", "sent": "Basic {basic}"}}'
    redacted = Redactor(frozenset({SECRET})).redact(text)
    assert redacted.startswith(f'{{"key": "{MARK}", "sent": "Basic dXNlcj')
    assert redacted.endswith('"}')


def test_characters_beyond_16_bits_are_found_in_json_escapes():
    """JSON escapes each such character as two surrogates."""
    secret = "ab\U0001f600cdef\U0001f601"
    assert Redactor(frozenset({secret})).redact(f"key: {json.dumps(secret)}.") == f'key: "{MARK}".'


def test_a_backslash_before_an_escape_hides_no_secret():
    """A secret is found where an escaped backslash precedes an escaped character."""
    secret = "ab\\\u03a9cd&/\\\u00e9-"
    for echo in (json.dumps(secret), json.dumps(json.dumps(secret))):
        assert "cd&/" not in Redactor(frozenset({secret})).redact(f"key: {echo}.")


def test_a_variable_that_is_not_utf8_is_redacted_like_any_other():
    """A value that cannot be encoded as UTF-8 is redacted, and breaks no other redaction."""
    raw = b"key-\xff\xfe-0123456789"
    redactor = Redactor(frozenset({os.fsdecode(raw)}))
    assert redactor.redact("a text without it") == "a text without it"
    for echo in (raw.decode(errors="replace"), quote(raw), base64.b64encode(raw).decode(), raw.hex()):
        assert "123456789" not in (redacted := redactor.redact(f"before {echo} after"))
        assert MARK in redacted


def test_a_text_is_redacted_before_it_is_cut():
    """No part of a secret is left at either end of a text that was cut through it."""
    with knowing(SECRET):
        for size in range(1, 60):
            head, tail = redact_head(f"key: {SECRET} more", size), redact_tail(f"key: {SECRET} more", size)
            assert "sk-" not in head
            assert "==" not in tail


def test_short_secrets_are_redacted_as_words_and_shorter_ones_are_not():
    """From 8 characters on in every form, with 6 or 7 as a whole word, with fewer never."""
    redactor = Redactor(frozenset({"hunter2", "tiny5"}))
    assert redactor.redact("is hunter2, not hunter22 or tiny5") == f"is {MARK}, not hunter22 or tiny5"


def test_many_layers_of_one_escape_are_decoded_in_linear_time():
    """A secret is found in linear time under ten thousand layers of percent-encoding or backslashes."""
    redactor = Redactor(frozenset({"abc/defgh"}))
    assert redactor.redact(f"x abc%{'25' * 10_000}2fdefgh y") == f"x {MARK} y"
    assert redactor.redact("x abc" + "\\" * 10_000 + "/defgh y") == f"x {MARK} y"


def test_libraries_that_log_headers_are_logged_from_warning_on():
    """The limit holds whatever level a library sets for itself."""
    for name in ("httpcore2.http11", "httpx2", "anthropic._base_client", "openai"):
        debug = logging.LogRecord(name, logging.DEBUG, "", 0, "headers", (), None)
        assert not holds_no_headers(debug)
        assert holds_no_headers(logging.LogRecord(name, logging.WARNING, "", 0, "refused", (), None))
    assert holds_no_headers(logging.LogRecord("executor.scheduler", logging.DEBUG, "", 0, "x", (), None))


@pytest.mark.parametrize("formatter", [JsonFormatter(), TextFormatter()])
def test_log_lines_hold_no_secrets(formatter: logging.Formatter):
    """Messages, fields and exceptions are redacted."""
    error = ValueError(f"bad {SECRET}")
    fields = {"msg": "key %s", "args": (SECRET,), "url": f"http://u:{SECRET}@h/", "levelname": "DEBUG"}
    record = logging.makeLogRecord({**fields, "exc_info": (ValueError, error, None)})
    with knowing(SECRET):
        line = formatter.format(record)
    assert line.count(MARK) == 3
    assert "sk-live" not in line


def test_uncaught_exceptions_are_printed_without_secrets(capsys):
    """The traceback of a service, which ends up in its log, is redacted."""
    with knowing(SECRET):
        with pytest.raises(ValueError, match="bad key") as raised:
            raise ValueError(f"bad key {SECRET}")
        print_redacted(raised.type, raised.value, raised.tb)
    printed = capsys.readouterr().err
    assert "ValueError: bad key ***" in printed
    assert "Traceback" in printed


def test_errors_of_a_provider_are_redacted():
    """The error text is stored beside the provider batch."""
    with knowing(SECRET):
        assert str(NoResponse(f"refused {SECRET}")) == f"refused {MARK}"


def test_short_secrets_are_named_in_the_log(caplog):
    """The warning names the variable and never its value."""
    warn_of_short_secrets({"MY_TOKEN": "hunter2", "OTHER_TOKEN": SECRET, "HOME": "/root"})
    [record] = caplog.records
    assert record.variables == ["MY_TOKEN"]
    assert "hunter2" not in JsonFormatter().format(record)


def test_the_registry_only_grows():
    """A secret that is added later is redacted beside the earlier ones."""
    with knowing():
        KNOWN.add({SECRET, "no"})
        KNOWN.add({"another-secret"})
        assert redact(f"{SECRET} another-secret no") == f"{MARK} {MARK} no"
