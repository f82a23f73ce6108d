"""`scoreline trace`: where the spans are, and what to do where there are none."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from scoreline.cli.main import app
from scoreline.command_error import CommandError
from scoreline.observability.span_reader import RecordedSpan
from tests.unit.scoreline.observability.spans import span


def traced(*argv: str, **environ: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(app, ["trace", "e-1", *argv], env={"EVAL_TRACE_DIR": None, **environ})


def refused(*argv: str, **environ: str) -> str:
    """Run the command where it fails; returns the error."""
    ran = traced(*argv, **environ)
    assert isinstance(ran.exception, CommandError)
    return str(ran.exception)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the spans of one evaluation."""
    made = span("task", 1, evaluation_id="e-1")
    line = json.dumps({each: getattr(made, each) for each in RecordedSpan.__slots__})
    (tmp_path / "executor-7.jsonl").write_text(f"{line}\n")
    return tmp_path


def test_the_folder_is_that_of_the_flag_or_of_the_settings(folder: Path):
    """The flag wins."""
    assert "task" in traced("--dir", str(folder), EVAL_TRACE_DIR="/nowhere").output
    assert "task" in traced(EVAL_TRACE_DIR=str(folder)).output


def test_one_document_is_printed_for_programs(folder: Path):
    """It is about the evaluation that was named."""
    document = json.loads(traced("--dir", str(folder), "--json").output)
    assert "e-1" in json.dumps(document)


def test_each_reason_for_no_trace_is_named(folder: Path):
    """No folder is set, it does not exist, or it has no span of the evaluation."""
    assert refused().startswith("where are the traces? Set EVAL_TRACE_DIR")
    assert refused("--dir", str(folder / "missing")) == (
        f"{folder / 'missing'} is no folder: no process has written its spans there."
    )
    (folder / "executor-7.jsonl").unlink()
    assert refused("--dir", str(folder), EVAL_TRACE_RATIO="0.25") == (
        f"{folder} has no trace of e-1. EVAL_TRACE_RATIO sets the share of evaluations that is traced, "
        "0.25 here; 1 traces all that are submitted then."
    )
