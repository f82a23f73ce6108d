"""Variables in headers and queries of requests: filled in, or refused by name."""

import pytest

from eventlog.redaction import redact
from providers.headers import UnfilledHeader, fill_in, fill_in_query
from tests.redaction.trial import knowing

URL = "https://example.org/answer?key=$SERVICE_KEY&page=2"


def test_a_variable_in_a_query_is_percent_encoded_and_redacted():
    """The value is sent so that it stays one parameter, and is a secret of the process from then on."""
    with knowing("another-secret"):
        filled = fill_in_query(URL, {"SERVICE_KEY": "a&b=c/0123456789\n"})
        assert filled == "https://example.org/answer?key=a%26b%3Dc%2F0123456789&page=2"
        assert "0123456789" not in redact(f"GET {filled}")


def test_only_named_variables_are_read():
    """A variable with bytes that are not UTF-8 fails no request that does not name it."""
    environ = {"SERVICE_KEY": "0123456789", "OTHER": "\udcff"}
    with knowing("another-secret"):
        assert fill_in_query(URL, environ).endswith("?key=0123456789&page=2")


def test_a_missing_variable_is_named_with_its_place():
    """The message names what to export, and whether a header or the query needs it."""
    with pytest.raises(UnfilledHeader, match=r"^the query of the url needs \$SERVICE_KEY,"):
        fill_in_query(URL, {})
    with pytest.raises(UnfilledHeader, match=r"^the header X-Key needs \$SERVICE_KEY,"):
        fill_in({"X-Key": "$SERVICE_KEY"}, {})
