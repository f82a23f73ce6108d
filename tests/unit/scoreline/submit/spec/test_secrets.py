"""What looks like a key, and what does not."""

import pytest
from pydantic import JsonValue

from executor.registry import target_type
from scoreline.submit.spec.secrets import find_secret

KEY_HEADERS = (
    *("Authorization", "Proxy-Authorization", "X-Api-Key", "api-key", "X-Goog-Api-Key", "Cookie"),
    *("X-Auth-Token", "Private-Token", "X-Functions-Key", "Ocp-Apim-Subscription-Key"),
    *("X-Access-Token", "X-RapidAPI-Key", "X-Webhook-Secret", "X-Hub-Signature", "X-Amz-Security-Token"),
)


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"headers": {"Authorization": "Bearer abcdefgh"}}, "headers.Authorization"),
        ({"headers": {"X-Api-Key": "anything"}}, "headers.X-Api-Key"),
        ({"a": ["x", {"b": "use sk-ant-0123456789"}]}, "a.1.b"),
        ({"url": "https://me:hunter2@example.org/"}, "url"),
        ({"feed": "https://example.org/?page=2&access_token=abc"}, "feed?access_token="),
        ({"env": {"DB_PASSPHRASE": "abc"}}, "env.DB_PASSPHRASE"),
    ],
)
def test_a_key_is_found_wherever_it_hides(options, where):
    """The option that holds a secret is named, the secret is not."""
    assert find_secret(options) == where


@pytest.mark.parametrize(
    "options",
    [
        {"headers": {"Authorization": "Bearer $TOKEN", "X-Api-Key": "$KEY"}},
        {"url": "https://$USER:$PASSWORD@example.org/"},
        {"prompt": "Is the bearer of the task-force's risk-assessment here?"},
        {"max_tokens": 100, "token": "$T", "function": "module:basic"},
        {"url": "https://example.org/?key=$KEY&max_tokens=100&q={input}&token={input}"},
        {"system": "Explain what https://example.org/ means, and what ?token=abc does."},
    ],
)
def test_names_of_variables_and_plain_words_are_let_through(options):
    """A spec may name its keys' variables or mention keys in a text."""
    assert find_secret(options) is None


@pytest.mark.parametrize(
    "options",
    [
        {"url": "http://h/?api_key=abc"},
        {"url": "http://h/?x=1&sig=abc"},
        {"url": "http://h/?X-Amz-Signature=abc"},
        {"url": "http://me:pw@h/"},
        *({"url": "http://h/", "headers": {name: "abc"}} for name in KEY_HEADERS),
        {"url": "http://h/", "headers": {"Authorization": "Bearer abc0123456789 $X"}},
    ],
)
def test_keys_of_http_targets_are_refused(options):
    """Keys in the query, the login or a usual header are refused; the error recommends `$NAME`."""
    with pytest.raises(ValueError, match=r"\$NAME") as refused:
        target_type("http").check(options)
    assert "abc" not in str(refused.value)


def test_headers_that_are_no_keys_are_let_through():
    """Numbers, switches, and keys that identify a request rather than its sender are allowed."""
    headers: dict[str, JsonValue] = {
        "Idempotency-Key": "abc",
        "X-Max-Tokens": "100",
        "Accept": "text/plain",
        "X-Cookie": "$C",
    }
    target_type("http").check({"url": "http://h/?max_tokens=5&page=2", "headers": headers})
