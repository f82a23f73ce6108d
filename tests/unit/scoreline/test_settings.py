"""Settings from the environment: limits that other packages share."""

import pytest

from executor.settings import MAX_NAME, ExecutorSettings
from scoreline.settings import SettingsError, load_settings


def test_an_executor_accepts_every_name_that_the_settings_accept():
    """One limit: a name is not accepted from the environment and rejected by the executor."""
    longest = "w" * MAX_NAME
    accepted = load_settings({"EVAL_WORKER_ID": longest})
    assert accepted.worker_id == longest
    assert ExecutorSettings(longest, slots=accepted.worker_concurrency).name == longest
    with pytest.raises(SettingsError, match=f"EVAL_WORKER_ID: .* at most {MAX_NAME} characters"):
        load_settings({"EVAL_WORKER_ID": longest + "w"})
