"""Preflight: warnings are printed, and everything that is fatal is one error."""

import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from scoreline.command_error import CommandError
from scoreline.submit.preflight import Preflight, preflight
from scoreline.submit.spec.builder import make_plan
from scoreline.submit.spec.plan import Plan

LOCAL = Preflight(distributed=False, is_wanted=True, allow_unsandboxed=True)
DISTRIBUTED = Preflight(distributed=True, is_wanted=True, allow_unsandboxed=True)
UNCHECKED = Preflight(distributed=False, is_wanted=False, allow_unsandboxed=True)


def checked(folder: Path, wanted: Preflight, **flags: object) -> tuple[Plan, str]:
    """Check a batch of flags; returns the plan and what was printed."""
    console = Console(file=StringIO(), width=40)
    given = {"dataset": "cases.jsonl", "targets": ["simulated"], **flags}
    plan = preflight(make_plan(None, given, folder=folder), console, wanted)
    assert isinstance(console.file, StringIO)
    return plan, console.file.getvalue()


def refused(folder: Path, wanted: Preflight, **flags: object) -> str:
    """Check a batch that is refused; returns the error."""
    with pytest.raises(CommandError) as error:
        checked(folder, wanted, **flags)
    return str(error.value)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a dataset; no key is set."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    (tmp_path / "cases.jsonl").write_text('{"input": "a"}\n')
    return tmp_path


def test_one_problem_is_one_sentence_and_the_way_around_it(folder: Path):
    """Two are a list."""
    model = ["anthropic/claude-haiku-4-5"]
    alone = refused(folder, LOCAL, targets=model).splitlines()
    assert "ANTHROPIC_API_KEY" in alone[0]
    assert alone[1:] == ["Nothing was submitted. To submit anyway: --no-preflight"]
    both = refused(folder, LOCAL, targets=[*model, "anthropic/claude-opus-4-5"]).splitlines()
    assert both[0] == "2 problems, nothing was submitted:"
    assert [line[:4] for line in both[1:3]] == ["  - ", "  - "]
    assert both[3:] == ["To submit anyway: --no-preflight"]


def test_no_way_around_is_offered_where_submission_refuses_as_well(folder: Path):
    """A dataset that is missing can't be submitted."""
    error = refused(folder, LOCAL, dataset="missing.jsonl", targets=["anthropic/claude-haiku-4-5"])
    assert "2 problems" in error
    assert "--no-preflight" not in error


def test_keys_of_other_machines_are_a_warning(folder: Path):
    """Executors of a fleet have their own; a missing dataset is fatal there, too."""
    _, printed = checked(folder, DISTRIBUTED, targets=["anthropic/claude-haiku-4-5"])
    assert printed.startswith("warning: anthropic/claude-haiku-4-5: ")
    assert "missing.jsonl" in refused(folder, DISTRIBUTED, dataset="missing.jsonl")


def test_only_a_local_batch_gets_an_interpreter_of_this_machine(folder: Path):
    """A path of this machine means nothing to executors elsewhere."""
    assert checked(folder, LOCAL)[0].spec.interpreter == sys.executable
    assert checked(folder, DISTRIBUTED)[0].spec.interpreter == ""


def test_without_preflight_nothing_is_checked(folder: Path):
    """What simulation replaces is printed all the same."""
    plan, printed = checked(folder, UNCHECKED, dataset="missing.jsonl", mode="simulated")
    assert plan.spec.interpreter == sys.executable
    assert printed.startswith("--mode simulated, nothing is called: ")
    assert "warning" not in printed
