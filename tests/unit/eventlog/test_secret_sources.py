"""Which variables, addresses and keys are secrets."""

import pytest

from eventlog.secret_sources import secrets_in, secrets_in_url, unredacted_variables


def test_secrets_of_an_environment_are_found_by_name_and_in_urls():
    """Keys by name, passwords in URLs and OTLP headers are; numbers, paths and plain URLs are not."""
    found = secrets_in(
        {
            "OPENAI_API_KEY": "sk-1",
            "PGPASSWORD": "pw-1",
            "X_TOKEN": "true",
            "MAX_TOKENS": "4096",
            "SSH_AUTH_SOCK": "/tmp",
            "AUTH_URL": "https://example.org/login",
            "EVAL_REDIS_URL": "redis://me:p%40ss@host/0",
            "HTTPS_PROXY": "http://u:proxy-pw@proxy",
            "FEED": "https://host/x?page=2&api_key=k-1",
            "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20t-1,x=y",
            "AUTHOR": "a-person",
        }
    )
    assert found == {
        "sk-1",
        "pw-1",
        "p%40ss",
        "p@ss",
        "proxy-pw",
        "k-1",
        "Bearer%20t-1",
        "Bearer t-1",
        "t-1",
        "y",
    }


@pytest.mark.parametrize("url", ["", "not a url", "http://[bad", "redis://host/0"])
def test_urls_without_a_password_have_no_secrets(url):
    """A URL without a password, or a text that is no URL, has no secret."""
    assert not secrets_in_url(url)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TOKENIZER", "sentence-piece"),
        ("TOKENIZER_PATH", "models/tok.json"),
        ("AUTH_METHOD", "password-2"),
        ("PRIMARY_KEY", "question_1"),
        ("CREDENTIALS_FILE", "/not/there.json"),
        ("PASSWORD_FILE", "/run/pw-1"),
        ("XAUTHORITY", "/home/me/.Xauthority-1"),
        ("SSH_AUTH_SOCK", "/not/there.sock"),
        ("EOS_TOKEN", "<|endoftext|>"),
        ("STOP_TOKEN", "Observation: 1"),
        ("MAX_TOKENS", "4096,8192"),
        ("SECRET_NAME", "prod/db-1"),
        ("COOKIE_DOMAIN", "example.org"),
        ("SIGNATURE_MODE", "hmac-sha256"),
        ("PASS_THRESHOLD", "0.8125000"),
        ("KEY_BINDINGS", "vi-mode-2"),
        ("PWD", "/not/there-1"),
        ("CONDA_DEFAULT_ENV", "sk-learn-tutorials"),
    ],
)
def test_variables_with_names_like_secrets_are_not_redacted(name: str, value: str):
    """Their values are answers, settings and paths, and no warning names them."""
    assert secrets_in({name: value}) == frozenset()
    assert unredacted_variables({name: value}) == []


@pytest.mark.parametrize(
    "name",
    [
        *("OPENAI_API_KEY", "APIKEY", "API_KEY_2", "COSMOS_PRIMARY_KEY", "AWS_SECRET_ACCESS_KEY", "KEY"),
        *("GITHUB_TOKEN", "AUTHTOKEN", "DB_PASSWORD", "PGPASSWORD", "MYSQL_PWD", "DB_PASS", "GITHUB_PAT"),
        *(
            "APP_JWT",
            "SSH_PASSPHRASE",
            "CREDENTIALS",
            "CLIENT_SECRET",
            "client_secret",
            "PRIMARY_DB_PASSWORD",
        ),
    ],
)
def test_whole_words_of_a_name_make_a_secret(name: str):
    """Such a variable is a secret; if its value is a plain word or a path, it is only warned of."""
    assert secrets_in({name: "x7-Yk+w_7TqLm5"}) == {"x7-Yk+w_7TqLm5"}
    for value in ("sentencepiece", "QUESTION", "/tmp"):
        assert secrets_in({name: value}) == frozenset()
        assert unredacted_variables({name: value}) == [name]


@pytest.mark.parametrize(
    "value", ["sk-ant-api03-Q7abc0123456789", "ghp_0123456789abcdefABCDEF", "AKIA0123456789ABCDEF"]
)
def test_well_known_keys_are_secrets_whatever_their_variable(value: str):
    """A key of a known format is a secret whatever its variable is called."""
    assert secrets_in({"HANDLE": value, "AWS_ACCESS_KEY_ID": value}) == {value}
