"""Secrets from files: which variables are read, which are left alone, and the errors."""

from pathlib import Path

import pytest

from scoreline.cli.secret_files import SecretFileError, names_secret_file, open_secret_files
from tests.integration.worker import scoreline

SECRET = "redis://executor:hunter2@redis:6379/0"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with a secret, and the newline that editors add."""
    path = tmp_path / "secret"
    path.write_text(f"{SECRET}\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "name", ["EVAL_REDIS_URL", "EVAL_POSTGRES_URL", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "MY_OWN_API_KEY"]
)
def test_a_secret_replaces_the_variable_that_names_its_file(name, file):
    """This holds for server URLs and every key; the `_FILE` variable is removed."""
    environ = {f"{name}_FILE": str(file), "PATH": "/bin"}
    open_secret_files(environ)
    assert environ == {name: SECRET, "PATH": "/bin"}


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "AWS_TOKEN_FILE", "EVAL_SHARDS_FILE", "_FILE"])
def test_other_programs_files_are_left_alone(name):
    """A variable that ends in `_FILE` but belongs to another program is not read."""
    environ = {name: "/nowhere"}
    open_secret_files(environ)
    assert environ == {name: "/nowhere"}
    assert not names_secret_file(name)


def test_an_empty_variable_is_dropped():
    """Compose passes an unset variable on as an empty one."""
    environ = {"OPENAI_API_KEY_FILE": "", "OPENAI_API_KEY": "given"}
    open_secret_files(environ)
    assert environ == {"OPENAI_API_KEY": "given"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "can't be read from"),
        (b"", "which is empty"),
        (b" \n\t\n", "which is empty"),
        (b"hunter2\nhunter3", "which holds more than one line"),
        (b"hunter2" * 20_000, "which holds more than one line"),
        (b"hunter2\xff", "which is not text"),
    ],
)
def test_an_unreadable_secret_is_an_error_without_its_content(content, message, tmp_path):
    """Missing, empty, too large or not text: one line names the variable and the file."""
    path = tmp_path / "secret"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SecretFileError, match=message) as refused:
        open_secret_files({"EVAL_REDIS_URL_FILE": str(path)})
    assert refused.value.variable == "EVAL_REDIS_URL_FILE"
    assert str(path) in str(refused.value)
    assert "hunter" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_a_secret_that_is_given_twice_is_an_error(file):
    """It would be ambiguous which value applies."""
    with pytest.raises(SecretFileError, match="both set"):
        open_secret_files({"EVAL_REDIS_URL": "redis://here", "EVAL_REDIS_URL_FILE": str(file)})


def test_a_command_reports_a_missing_secret_in_one_line():
    """The error names the secret, without a traceback."""
    ended = scoreline("worker", "check", "--no-sandbox", EVAL_REDIS_URL_FILE="/nowhere/at/all")
    message = "EVAL_REDIS_URL_FILE can't be read from /nowhere/at/all (No such file or directory)."
    assert (ended.returncode, ended.stderr) == (1, f"error: {message}\n")
