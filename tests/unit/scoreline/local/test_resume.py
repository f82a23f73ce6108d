"""What `batch resume` and `batch retry` print of what they changed."""

import json
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from scoreline.command_error import CommandError
from scoreline.local.resume import _nothing_to_retry, _who_asks


def moved(**counts: int) -> Any:
    """Return counts of a move, of which only these are read."""
    return SimpleNamespace(**counts)


def test_moved_evaluations_are_counted_by_who_calls_the_provider():
    """Withdrawn ones, and those that executors finish, are named only where there are some."""
    assert _who_asks(moved(to_providers=1, withdrawn=0, to_executors=0)) == (
        "1 evaluation goes to provider batches."
    )
    assert _who_asks(moved(to_providers=7, withdrawn=2, to_executors=3)) == (
        "7 evaluations go to provider batches (2 withdrawn from executors); "
        "evaluations that executors have started finish there."
    )


def test_a_retry_of_nothing_is_no_error_unless_evaluations_were_named(capsys: pytest.CaptureFixture[str]):
    """Those are not among the dead letters."""
    console = Console(file=StringIO())
    assert _nothing_to_retry("nightly", (), console, as_json=True) == 0
    assert json.loads(capsys.readouterr().out) == {"batch_id": "nightly", "reopened": 0}
    with pytest.raises(CommandError, match="e-1: not among the dead letters of nightly"):
        _nothing_to_retry("nightly", ("e-1",), console, as_json=False)
