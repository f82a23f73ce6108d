"""What looks like a key, and what does not."""

import pytest

from scoreline.spec.secrets import find_secret


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"headers": {"Authorization": "Bearer abcdefgh"}}, "headers.Authorization"),
        ({"headers": {"X-Api-Key": "anything"}}, "headers.X-Api-Key"),
        ({"a": ["x", {"b": "use sk-ant-0123456789"}]}, "a.1.b"),
        ({"url": "https://me:hunter2@example.org/"}, "url"),
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
    ],
)
def test_names_of_variables_and_plain_words_are_let_through(options):
    """A spec that names its keys, or speaks of them, is fine."""
    assert find_secret(options) is None
