"""Errors of a submission: each is reported in one line, and no batch is accepted."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import psycopg
import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from projections.database.errors import DatabaseUnavailable
from projections.ledger.postgres import PostgresLedger
from scoreline.cli.batch import app
from scoreline.command_error import CommandError
from scoreline.servers.addresses import Servers
from scoreline.settings import Settings, SettingsError
from scoreline.submit import submission as submitting
from scoreline.submit.spec.builder import make_plan

GOOD = '{"input": "a", "expected": "a"}\n'
FILES = {
    "good.jsonl": GOOD,
    "broken.jsonl": GOOD + '{"input": "b", "expec\n',
    "twice.jsonl": '{"id": "x", "input": 1, "expected": 1}\n{"id": "x", "input": 2, "expected": 2}\n',
    "unsure.jsonl": GOOD + '{"input": "b"}\n',
    "empty.jsonl": "",
    "blank.jsonl": "\n\n",
    "odd.yaml": "dataset: good.jsonl\ntarget: simulated\nevaluater: exact\n",
    "deep.yaml": "dataset: {path: good.jsonl, recrods: x}\ntarget: simulated\n",
    "torn.yaml": "dataset: [good.jsonl\n",
}
ASKED = ("--target", "simulated", "--evaluator", "exact", "--dataset")
REFUSED: dict[tuple[str, ...], str] = {
    (): "There is no scoreline.yaml in ",
    ("--dataset", "good.jsonl"): "which target? Give --target",
    ("--target", "simulated"): "which dataset? Give --dataset",
    (*ASKED, "good.jsonl", "--target", "pyton:app:f"): "--target: there is no target type 'pyton'; "
    "did you mean 'python'?",
    (*ASKED, "good.jsonl", "--evaluator", "exat"): "--evaluator: there is no evaluator type 'exat'; "
    "did you mean 'exact'?",
    (*ASKED, "good.jsonl", "--input", "inptu"): "good.jsonl, line 1: there is no column 'inptu'. "
    "The row has: input, expected. Did you mean 'input'?",
    (*ASKED, "good.jsonl", "--prompt", "{inptu}?"): "Did you mean 'input'? Needed by the prompt.",
    (*ASKED, "good.jsonl", "--tag", "slow"): "no case has the tag 'slow'",
    (*ASKED, "good.jsonl", "--timeout", "soon"): "--timeout: `timeout`",
    (*ASKED, "nowhere.jsonl"): "nowhere.jsonl: can't be read: No such file",
    (*ASKED, "broken.jsonl"): "broken.jsonl, line 2: broken JSON: EOF while parsing a string at column 21",
    (*ASKED, "twice.jsonl"): "twice.jsonl, line 2: the id 'x' was there before, in line 1",
    (*ASKED, "unsure.jsonl"): "unsure.jsonl, line 2: there is no expected value, and the evaluator 'exact'",
    (*ASKED, "empty.jsonl"): "empty.jsonl: the file is empty",
    (*ASKED, "blank.jsonl"): "blank.jsonl: there is not one row in it",
    ("-c", "odd.yaml"): "odd.yaml, line 3: there is no key `evaluater`; did you mean `evaluator`?",
    ("-c", "deep.yaml"): "deep.yaml, line 1: there is no key `recrods`; did you mean `records`?",
    ("-c", "torn.yaml"): "torn.yaml: broken YAML",
    ("-c", "nowhere.yaml"): "nowhere.yaml: can't be read: No such file",
    (*ASKED, "good.jsonl", "--distributed"): "--distributed needs EVAL_REDIS_URL",
}
MISUSED: dict[tuple[str, ...], str] = {
    ("run", "--limit", "0"): "--limit",
    ("run", "--min-pass-rate", "90"): "--min-pass-rate",
    ("run", "--watch", "--detach"): "--watch stays until the end",
    ("run", "--wrokers", "3"): "No such option: --wrokers",
    ("list", "--status", "finished"): "'finished' is none of running, paused, completed",
    ("resume",): "Missing argument 'BATCH'",
}
BACKENDS = {
    "azure_sb": "this backend is known, but not available here",
    "memory": "it lives inside one process, so workers can't share it; use redis",
    "rediss": "there is no such backend; there are redis and memory. Did you mean redis?",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with invalid files."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def urls(redis_url: str, postgres_url: str) -> dict[str, str]:
    """Servers that are ready."""
    return {"EVAL_REDIS_URL": redis_url, "EVAL_POSTGRES_URL": postgres_url}


def batch(*arguments: str, environ: Mapping[str, str]) -> Result:
    """Run a command of `scoreline batch` to its end."""
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200", **environ})


def test_an_invalid_submission_is_refused_with_its_place(folder: Path, urls: dict[str, str]) -> None:
    """The error has file and line, or flag, and the nearest name; no part of a batch is accepted."""
    for flags, message in REFUSED.items():
        environ = {} if "--distributed" in flags else urls
        ran = batch("run", *flags, environ=environ)
        assert isinstance(ran.exception, CommandError), (flags, ran.exception, ran.output)
        assert message in str(ran.exception), (flags, str(ran.exception))
        assert ran.stdout == ""
    with psycopg.connect(urls["EVAL_POSTGRES_URL"]) as conn:
        assert conn.execute("SELECT count(*) FROM batches").fetchone() == (0,)
        assert conn.execute("SELECT count(*) FROM evaluations").fetchone() == (0,)


@pytest.mark.parametrize("words", MISUSED, ids=" ".join)
def test_misuse_ends_with_2(words: tuple[str, ...]) -> None:
    """An unknown flag or a flag out of range is a usage error, reported before any server is contacted."""
    ran = batch(*words, environ={})
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert MISUSED[words] in " ".join(ran.stderr.replace("│", " ").split())


def test_a_queue_that_is_not_there_is_named(folder: Path) -> None:
    """An unknown, unavailable or in-process backend is an error, and so is an unknown setting."""
    for name, message in BACKENDS.items():
        ran = batch("run", *ASKED, "good.jsonl", environ={"EVAL_QUEUE_BACKEND": name})
        assert isinstance(ran.exception, CommandError), name
        assert str(ran.exception).startswith(f"EVAL_QUEUE_BACKEND={name}: {message}")
    ran = batch("run", *ASKED, "good.jsonl", environ={"EVAL_WORKER_CONCURENCY": "3"})
    assert isinstance(ran.exception, SettingsError)
    assert "Did you mean EVAL_WORKER_CONCURRENCY?" in str(ran.exception)


@pytest.mark.parametrize("verb", ["pause", "resume", "retry", "cancel"])
def test_an_unknown_batch_names_those_near_it(folder: Path, urls: dict[str, str], verb: str) -> None:
    """Commands that change a batch suggest near names like those that show one."""
    ran = batch("run", *ASKED, "good.jsonl", "--detach", "--distributed", environ=urls)
    assert ran.exit_code == 0, ran.exception
    with psycopg.connect(urls["EVAL_POSTGRES_URL"]) as conn:
        [(batch_id,)] = conn.execute("SELECT batch_id FROM batches").fetchall()
    ran = batch(verb, f"{batch_id}x", environ=urls)
    assert str(ran.exception) == f"There is no batch {batch_id}x. Nearest: {batch_id}"


def test_retrying_an_evaluation_without_a_dead_letter_is_reported(
    folder: Path, urls: dict[str, str]
) -> None:
    """Nothing to retry is no error; a named evaluation without a dead letter is one."""
    ran = batch("run", *ASKED, "good.jsonl", "--detach", "--distributed", environ=urls)
    batch_id = ran.stderr.partition(":")[0]
    ran = batch("retry", batch_id, "--json", environ=urls)
    assert (ran.exit_code, ran.stdout) == (0, f'{{"batch_id": "{batch_id}", "reopened": 0}}\n')
    ran = batch("retry", batch_id, "--only", "nonsense", environ=urls)
    assert f"nonsense: not among the dead letters of {batch_id}" in str(ran.exception)


def test_a_batch_without_an_evaluator_is_reported_as_not_scored(folder: Path, urls: dict[str, str]) -> None:
    """The output of a batch whose answers are only recorded states that they are not scored."""
    ran = batch(
        "run", "--target", "simulated", "--dataset", "good.jsonl", "--detach", "--distributed", environ=urls
    )
    assert (ran.exit_code, "Not scored: there is no evaluator" in ran.stderr) == (0, True), ran.stderr


async def test_a_database_that_goes_away_at_submission_is_explained(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk, for example, gives no traceback and no driver's text, but the remedy."""

    async def now(*_: object) -> datetime:
        raise DatabaseUnavailable("server closed the connection: postgresql://me:hunter2@db")

    monkeypatch.setattr(PostgresLedger, "now", now)
    plan = make_plan(None, {"mode": "simulated"}, folder=folder)
    servers = Servers("redis://unused", "postgresql://me:hunter2@127.0.0.1:1/none")
    with pytest.raises(CommandError, match="accepted whole or not at all") as raised:
        await submitting.submit(plan, servers, Settings(), Console(quiet=True))
    assert "hunter2" not in str(raised.value)
