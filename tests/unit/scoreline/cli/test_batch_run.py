"""`batch run`, `resume` and `retry`: what the flags pass on, and the exit code."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from scoreline.cli.batch import app
from scoreline.local import resume, run
from scoreline.local.run import Placement


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Record the batches that would run; each ends with exit code 4."""
    received: list[tuple[Any, ...]] = []

    def record(*arguments: object, **options: object) -> int:
        received.append((*arguments, options))
        return 4

    monkeypatch.setattr(run, "run_batch", record)
    for name in ("resume_batch", "retry_batch"):
        monkeypatch.setattr(resume, name, record)
    return received


def invoked(*argv: str) -> Result:
    """Run a command of `scoreline batch`."""
    return CliRunner().invoke(app, list(argv), env={"COLUMNS": "200"})


def test_watch_and_detach_exclude_each_other(calls: list[tuple[Any, ...]]):
    """Either alone is accepted."""
    both = invoked("run", "--watch", "--detach")
    assert (both.exit_code, calls) == (2, [])
    assert "--watch stays until the end, --detach returns at once" in both.output
    assert [invoked("run", flag).exit_code for flag in ("--watch", "--detach")] == [4, 4]
    assert [placement.detach for _, _, placement, _ in calls] == [False, True]


def test_flags_of_a_run_override_its_spec(calls: list[tuple[Any, ...]]):
    """The exit code of the command is that of the batch."""
    argv = (
        "-c",
        "s.yaml",
        "--batch-fallback",
        "sync",
        "--min-pass-rate",
        "0.9",
        "--no-preflight",
        "--json",
    )
    assert invoked("run", *argv).exit_code == 4
    [(config, flags, placement, options)] = calls
    assert (config, flags["batch_api"], flags["min_pass_rate"]) == (Path("s.yaml"), "sync", 0.9)
    assert (placement.checks, options) == (False, {"as_json": True})


def test_a_resumed_batch_gets_a_new_budget(calls: list[tuple[Any, ...]]):
    """A budget that is no amount is refused."""
    assert invoked("resume", "nightly", "--max-cost", "10").exit_code == 4
    [(batch, placement, options)] = calls
    assert (batch, placement, options["budget"]) == ("nightly", Placement(), {"max_cost_usd": 10})
    assert invoked("resume", "nightly", "--max-cost", "much").exit_code != 4
    assert len(calls) == 1


def test_a_retry_is_of_all_dead_letters_or_of_a_selection(calls: list[tuple[Any, ...]]):
    """Without `--only` it is all of them."""
    invoked("retry", "nightly")
    invoked("retry", "nightly", "--only", "e-1", "--only", "e-2")
    assert [list(only) for _, only, _, _ in calls] == [[], ["e-1", "e-2"]]
