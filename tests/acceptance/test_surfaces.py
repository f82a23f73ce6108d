"""Exports, comparisons, tables and help as a user meets them: real commands, narrow screens, pipes."""

import csv
import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.acceptance.batch_commands import Folder
from tests.acceptance.terminal import on_terminal
from tests.integration.worker import SCORELINE, environment, scoreline

TARGETS = """
def first(prompt):
    return prompt if prompt != "3" else "three"

def second(prompt):
    if prompt == "2":
        raise ValueError("gone")
    return prompt if prompt != "1" else "one"
"""
STYLE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
RUN = ("batch", "run", "--dataset", "cases.jsonl", "--evaluator", "exact", "--json", "--target")


async def test_run_writes_exports_in_the_format_of_their_names(
    tmp_path: Path, redis_url: str, postgres_url: str
) -> None:
    """Below the gate, too: an array, lines, a table and JUnit, with tags, columns and prompt."""
    folder = Folder(tmp_path, redis_url, postgres_url)
    case = '{"input": "3", "expected": "3", "tags": ["odd"], "colour": "red"}\n'
    folder.write("cases.jsonl", case)
    folder.write("two.py", TARGETS)
    outputs = [word for suffix in ("json", "jsonl", "csv", "xml") for word in ("-o", f"r.{suffix}")]
    refused = await folder.run(*RUN, "python:two:first", "-o", "r.txt")
    assert (refused.code, "-o r.txt: the name of the file must end with one of" in refused.stderr) == (
        1,
        True,
    )
    assert folder.ask("SELECT count(*) FROM batches") == [(0,)]
    gate = ("--prompt", "{colour}{input}", "--min-pass-rate", "0.5")
    ran = await folder.run(*RUN, "python:two:first", *gate, *outputs)
    assert ran.code == 100
    [record] = json.loads((folder.root / "r.json").read_text())
    assert json.loads((folder.root / "r.jsonl").read_text()) == record
    assert (record["tags"], record["metadata"]["colour"], record["cached"]) == (["odd"], "red", False)
    assert (record["rendered_prompt"], record["output"]) == ("red3", "red3")
    assert (record["input_tokens"], record["output_tokens"]) == (0, 0)
    with (folder.root / "r.csv").open() as table:
        [row] = csv.DictReader(table)
    assert (row["rendered_prompt"], row["verdict"], json.loads(row["tags"])) == ("red3", "failed", ["odd"])
    suite = ET.parse(folder.root / "r.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")


async def test_compare_shows_what_changed_and_fails_on_regression(
    tmp_path: Path, redis_url: str, postgres_url: str
) -> None:
    """Input, both answers and reasons; 101 only where asked, and not for what may be chance."""
    folder = Folder(tmp_path, redis_url, postgres_url)
    folder.cases(4)
    folder.write("two.py", TARGETS)
    before = (await folder.run(*RUN, "python:two:first")).document["batch_id"]
    after = (await folder.run(*RUN, "python:two:second")).document["batch_id"]
    compare = ("batch", "compare", before, after)
    plain = await folder.run(*compare)
    assert plain.code == 0
    assert re.search(r"input +1\n +expected 1\n +before +1\n +after +one \(exact: expected", plain.stdout)
    assert "ValueError: gone" in plain.stdout
    assert re.search(r"newly passing: 1\n .*\n +input +3\n +expected 3\n +before +three", plain.stdout)
    assert (await folder.run(*compare, "--fail-on-regression")).code == 101
    assert (await folder.run(*compare, "--fail-on-regression", "--significant")).code == 0
    assert (await folder.run("batch", "compare", before, before, "--fail-on-regression")).code == 0
    folder.write("cases.jsonl", '{"id": "another", "input": "1", "expected": "1"}\n')
    other = (await folder.run(*RUN, "python:two:first")).document["batch_id"]
    empty = await folder.run("batch", "compare", before, other, "--fail-on-regression")
    assert (empty.code, empty.stdout) == (1, "")
    assert "have no case in common that both have scored" in empty.stderr
    limited = await folder.run(*compare, "--limit", "1")
    assert f"scoreline batch compare {before} {after} --all" in limited.stdout
    flips = json.loads((await folder.run(*compare, "--json")).stdout)["flips"]
    assert {flip["right_output"] for flip in flips} == {"one", None, "3"}
    _tables_fit(folder, before, after)


def _tables_fit(folder: Folder, before: str, after: str) -> None:
    """No table is wider than its terminal, and no id is cut; commands to type may be longer."""
    for columns in (80, 60):
        for arguments in (
            ("batch", "list"),
            ("batch", "status", after),
            ("batch", "dlq", after),
            ("batch", "compare", before, after),
        ):
            _, output = on_terminal(*arguments, cwd=folder.root, environ=folder.environ, columns=columns)
            lines = [line.rstrip() for line in STYLE.sub("", output).splitlines()]
            wide = [line for line in lines if len(line) > columns and "scoreline " not in line]
            assert [line for line in wide if "→" not in line] == [], (arguments, columns)
            assert after in output


@pytest.mark.parametrize(
    "command",
    [
        "batch run",
        "batch status",
        "batch export",
        "worker start",
        "replay",
        "storage-worker start",
        "provider-sim",
    ],
)
def test_switches_look_like_switches(command: str) -> None:
    """No flag shows a value that it does not take, at 80 columns."""
    shown = scoreline(*command.split(), "--help", COLUMNS="80").stdout
    assert "--help" in shown
    assert "<bool>" not in shown
    assert "TEXT" not in shown


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("gpt-4o", "openai/gpt-4o"),
        ("claude-haiku-4-5", "anthropic/claude-haiku-4-5"),
        ("gemini-2.5-pro", "gemini/gemini-2.5-pro"),
        ("mistral-large-latest", "mistral/mistral-large-latest"),
        ("opneai/gpt-4o", "openai/gpt-4o"),
    ],
)
def test_the_bare_name_of_a_model_suggests_its_provider(tmp_path: Path, typed: str, meant: str) -> None:
    """What to type instead, before anything starts."""
    (tmp_path / "cases.jsonl").write_text('{"input": "1"}\n')
    ran = subprocess.run(
        [SCORELINE, "batch", "run", "--dataset", "cases.jsonl", "--target", typed],
        cwd=tmp_path,
        env=environment(EVAL_DATA_DIR=str(tmp_path)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, f"Did you mean {meant}?" in ran.stderr) == (1, True), ran.stderr


def test_printed_commands_can_be_typed_where_the_command_is_not_on_the_path(
    tmp_path: Path, redis_url: str, postgres_url: str
) -> None:
    """Started by a path, it prints that path; what it printed runs in a shell as it stands."""
    folder = Folder(tmp_path, redis_url, postgres_url)
    folder.cases(2)
    (folder.root / "bin").mkdir()
    (folder.root / "bin" / "scoreline").symlink_to(SCORELINE)
    bare = {**environment(**folder.environ), "PATH": "/usr/bin:/bin"}
    assert shutil.which("scoreline", path=bare["PATH"]) is None
    started = ["bin/scoreline", *RUN[:4], "--evaluator", "exact", "--target", "python:app:echo"]
    ran = subprocess.run(
        started, cwd=folder.root, env=bare, capture_output=True, text=True, check=False
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    [printed] = re.findall(r"All results: (.*)", ran.stderr)
    assert printed.startswith("bin/scoreline batch export ")
    typed = subprocess.run(printed, shell=True, cwd=folder.root, env=bare, capture_output=True, check=False)
    assert typed.returncode == 0
    assert len((folder.root / "results.jsonl").read_text().splitlines()) == 2
    piped = subprocess.run(
        f"bin/scoreline batch status {folder.batch_id()} | head -1",
        shell=True, cwd=folder.root, env=bare, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (piped.stderr, piped.stdout.count("\n")) == ("", 1)
