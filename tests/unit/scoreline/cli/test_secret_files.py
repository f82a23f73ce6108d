"""Secrets from files: what is taken, what is left alone, and what is said when one can't be had."""

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
def test_what_a_file_holds_takes_its_names_place(name, file):
    """The URLs of the servers, and every key; the name of the file is gone afterwards."""
    environ = {f"{name}_FILE": str(file), "PATH": "/bin"}
    open_secret_files(environ)
    assert environ == {name: SECRET, "PATH": "/bin"}


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "AWS_TOKEN_FILE", "EVAL_SHARDS_FILE", "_FILE"])
def test_other_programs_files_are_left_alone(name):
    """A name that ends like ours does not make a secret of a file."""
    environ = {name: "/nowhere"}
    open_secret_files(environ)
    assert environ == {name: "/nowhere"}
    assert not names_secret_file(name)


def test_a_name_that_says_nothing_is_dropped():
    """Compose passes on what was not set as nothing."""
    environ = {"OPENAI_API_KEY_FILE": "", "OPENAI_API_KEY": "given"}
    open_secret_files(environ)
    assert environ == {"OPENAI_API_KEY": "given"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "can't be read from"),
        (b"", "which is empty"),
        (b" \n\t\n", "which is empty"),
        (b"hunter2\nhunter3", "which holds more than one line"),
        (b"hunter2" * 20_000, "which holds more than one line"),
        (b"hunter2\xff", "which is not text"),
    ],
)
def test_a_secret_that_can_not_be_had_is_an_error_that_does_not_tell_it(content, said, tmp_path):
    """Missing, empty, too much, no text: each in one line that names variable and file."""
    path = tmp_path / "secret"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SecretFileError, match=said) as refused:
        open_secret_files({"EVAL_REDIS_URL_FILE": str(path)})
    assert refused.value.variable == "EVAL_REDIS_URL_FILE"
    assert str(path) in str(refused.value)
    assert "hunter" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_a_secret_that_is_given_twice_is_an_error(file):
    """Nobody has to guess which one counts."""
    with pytest.raises(SecretFileError, match="both set"):
        open_secret_files({"EVAL_REDIS_URL": "redis://here", "EVAL_REDIS_URL_FILE": str(file)})


def test_a_command_says_in_one_line_what_is_wrong():
    """Whoever forgot a secret reads which one, without a traceback."""
    ended = scoreline("worker", "check", "--no-sandbox", EVAL_REDIS_URL_FILE="/nowhere/at/all")
    said = "EVAL_REDIS_URL_FILE can't be read from /nowhere/at/all (No such file or directory)."
    assert (ended.returncode, ended.stderr) == (1, f"error: {said}\n")
