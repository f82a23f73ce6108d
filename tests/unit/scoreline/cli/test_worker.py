"""Flags of `scoreline worker start`: name, labels and limits of the executor."""

import socket
from datetime import timedelta
from typing import Any

import pytest
import typer

from executor.settings import MAX_NAME, ExecutorSettings
from scoreline.cli.worker import WorkerOptions
from scoreline.settings import RateLimitMode, Settings


def configured(options: WorkerOptions, **settings: Any) -> ExecutorSettings:
    """Return the settings of an executor with these flags."""
    return options.executor_settings(Settings(**settings))


def test_an_executor_is_named_after_its_host():
    """Unless it is given a name, which a terminal can print."""
    assert configured(WorkerOptions()).name == socket.gethostname()
    longest = "x" * MAX_NAME
    assert configured(WorkerOptions(), worker_id=longest).name == longest
    for name in ("a\nb", "\x1b[31m"):
        with pytest.raises(typer.BadParameter, match=f"1 to {MAX_NAME} printable characters"):
            configured(WorkerOptions(), worker_id=name)


def test_labels_of_flags_and_settings_add_up():
    """One that is no label is refused."""
    found = configured(WorkerOptions(label=["gpu"]), worker_labels="region=eu")
    assert found.eligibility.labels == {"gpu", "region=eu"}
    with pytest.raises(typer.BadParameter, match="'a b' is not a label"):
        configured(WorkerOptions(label=["gpu", "a b"]))


def test_an_executor_serves_its_run_and_project():
    """Rate limits are local only where the settings ask for that."""
    found = configured(WorkerOptions(run_id="run-1", project="search", once=True), worker_drain=7)
    assert (found.eligibility.run_id, found.eligibility.project) == ("run-1", "search")
    assert (found.once, found.drain) == (True, timedelta(seconds=7))
    assert not found.keeps_lanes_alone
    assert configured(WorkerOptions(), rate_limit_mode=RateLimitMode.PER_WORKER).keeps_lanes_alone


def test_flags_override_the_environment(monkeypatch: pytest.MonkeyPatch):
    """A flag that was not given leaves the setting as it is."""
    monkeypatch.setenv("EVAL_WORKER_CONCURRENCY", "3")
    monkeypatch.setenv("EVAL_LOG_LEVEL", "WARNING")
    kept, given = WorkerOptions().settings(), WorkerOptions(concurrency=5, verbose=True).settings()
    assert (kept.worker_concurrency, kept.log_level) == (3, "WARNING")
    assert (given.worker_concurrency, given.log_level) == (5, "DEBUG")
